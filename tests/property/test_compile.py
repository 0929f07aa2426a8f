"""Whatever the documents hold, compiling answers; and what it accepts, a data plane can serve from."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.compile import compile_documents, effective_values
from controlplane.documents import Document
from controlplane.files import read_folder
from memplane.builtin import policies_folder
from memplane.policy.access import AccessIndex
from memplane.policy.codec import from_json, to_json
from memplane.policy.effective import EffectivePolicies

SEEDS = [
    document.content
    for folder in ("examples/minimal", "examples/rbac", "default")
    for document in read_folder(policies_folder(folder))
]
CHUNKS = (
    b"\t",
    b"\n",
    b"  ",
    b": ",
    b"- ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"&a ",
    b"*a",
    b"!!str ",
    b"'",
    b'"',
    b"#",
    b"|",
    b"?",
)
VALUES = (
    b"~",
    b".nan",
    b"1e999",
    b"-1",
    b"yes",
    b"true",
    b"0x",
    b"\xff",
    b"\0",
    "记".encode(),
    b"\x85",
    b"<<",
    b"*",
    b"a.b",
)


@st.composite
def edited(draw: st.DrawFn) -> bytes:
    """A shipped file after a few careless edits."""
    content = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        content = content[:start] + draw(st.sampled_from((b"", *CHUNKS, *VALUES))) + content[end:]
    return content


def check(content: bytes) -> None:
    compiled = compile_documents([Document("a.yaml", content)], False)
    lines = content.count(b"\n") + content.count(b"\r") + 2
    for found in compiled.diagnostics:
        assert found.code.isupper()
        assert 0 < len(found.message) < 1000
        assert 0 <= found.line <= lines
    assert (compiled.policy is None) == bool(compiled.errors)
    if compiled.policy is not None:
        served = from_json(to_json(compiled.policy))
        assert served == compiled.policy
        EffectivePolicies(served).for_namespace("dept.sales.agent_a")
        AccessIndex(served.rbac, None)
        assert effective_values(compiled, "dept.sales.agent_a")


@settings(max_examples=250)
@given(edited())
def test_an_edited_file_is_accepted_or_told_about(content: bytes) -> None:
    check(content)


@settings(max_examples=150)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"%YAML 1.1\n---\nwrite_policy: {dedup: yes}\n")
@example(b"%TAG ! tag:x,2000:\n---\n{}\n")
@example(b"? {a: b}\n")
@example("write_policy: {rules: [{pattern: '(?#'}]}\u2028x: \ufffe".encode())
def test_any_bytes_are_accepted_or_told_about(content: bytes) -> None:
    check(content)
