import pytest

from controlplane.compile import compile_documents
from controlplane.compiled import Compiled, effective_values
from controlplane.documents import Document


def compiled(*contents: str) -> Compiled:
    documents = [Document(f"{place}.yaml", content.encode()) for place, content in enumerate(contents)]
    return compile_documents(documents, True)


def test_effective_values_name_the_place_and_layer_of_each() -> None:
    result = compiled(
        "write_policy:\n  threshold: 0.8\n",
        "namespace_policy:\n  overrides:\n    dept:\n      write_policy:\n        dedup: false\n"
        "    dept.sales:\n      retrieve_policy:\n        weights:\n          text: 0.3\n        recency_words: [新]\n",
    )
    values = {value.path: value for value in effective_values(result, "dept.sales.agent_a")}
    assert values["write_policy.threshold"][1:] == (0.8, "0.yaml", 2, "base")
    assert values["write_policy.dedup"][1:] == (False, "1.yaml", 5, "dept")
    assert values["retrieve_policy.weights.text"][1:] == (0.3, "1.yaml", 9, "dept.sales")
    assert values["retrieve_policy.recency_words"][1:] == (["新"], "1.yaml", 10, "dept.sales")
    assert values["retrieve_policy.weights.vector"][1:] == (0.6, "", 0, "default")
    others = {value.path: value.layer for value in effective_values(result, "dept.salesforce")}
    assert (others["retrieve_policy.weights.text"], others["write_policy.dedup"]) == ("default", "dept")


def test_a_refused_set_has_no_effective_values() -> None:
    with pytest.raises(ValueError, match="did not compile"):
        effective_values(compiled("x: 1"), "dept")
