from collections import Counter

import pytest

from dataplane.adapters.elasticsearch.terms import BITS, MAX_SCORED, STEP, best_matches, indexed, term_of
from dataplane.logic.bm25 import single_weight, term_weights


def weight_of(fields: dict[str, object], token: str) -> float:
    """What the fields of a memory say that a token weighs in it."""
    terms, single = str(fields["tokens"]).split(" "), fields["single_weight"]
    assert isinstance(single, float)
    bits = [int(term.rpartition("|")[2]) for term in terms if term.startswith(f"{token}|")]
    return single * ((token in terms) + STEP * sum(1 << bit for bit in bits))


@pytest.mark.parametrize("length", [1, 5, 30, 60])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_fields_say_what_a_token_weighs(length: int, count: int) -> None:
    words = ["word"] * count + [f"w{number}" for number in range(length)]
    exact = term_weights(Counter(words))
    made = indexed(words)
    assert weight_of(made, "w0") == pytest.approx(exact["w0"], rel=1e-12)
    assert weight_of(made, "word") == pytest.approx(exact["word"], rel=0.06)


def test_repeats_in_a_long_memory_count_for_three_at_most() -> None:
    made = indexed(["word"] * 400)
    assert weight_of(made, "word") == pytest.approx(2.875 * single_weight(400))


def test_no_term_has_white_space_or_is_cut() -> None:
    for token in ("a b", "a|3", "\ud83d", "x" * 5000, "", "\u2028", "\x1c", "𠀀" * 101, "#a"):
        assert term_of(token).startswith("#")
        assert len(term_of(token)) == 33
    for token in ("inv-2024/0031", "精排", "a.b@c.d", "𠀀𠀀"):
        assert term_of(token) == token


def test_a_query_of_many_tokens_scores_by_the_rarest_and_matches_by_all() -> None:
    tokens = [f"t{number}" for number in range(10_000)]
    query = best_matches({token: float(number) for number, token in enumerate(tokens[:1000])}, tokens, [])
    query = query["function_score"]["query"]
    clauses = query["bool"]["should"]
    assert len(clauses) == MAX_SCORED * (BITS + 1) < 1024 - 100
    assert clauses[0]["term"]["tokens"]["value"] == "t999"
    assert len(query["bool"]["filter"][0]["terms"]["tokens"]) == 10_000
