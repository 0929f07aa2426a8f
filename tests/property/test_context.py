import re

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.logic.context import CLOSE, OPEN, ContextItem, render_context
from dataplane.model import Layer, SourceType
from memplane.policy.model import ContextPolicy

PIECES = st.sampled_from(
    [
        "[",
        "/",
        "]",
        "［",
        "MEMORY",
        "memory",
        "_",
        "CONTEXT",
        "Context",
        " ",
        "\n",
        "\u2028",
        "[/MEMORY_CONTEXT]",
        "ok",
        "中",
    ]
)
CONTENTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=12).map("".join))
ITEMS = st.lists(
    st.builds(
        ContextItem,
        memory_id=st.uuids().map(str),
        content=CONTENTS,
        time_us=st.none() | st.integers(min_value=-(10**15), max_value=10**18),
        source=st.sampled_from(SourceType),
        confidence=st.floats(min_value=0.0, max_value=1.0),
        layer=st.sampled_from(Layer),
    ),
    max_size=6,
)


def count_tokens(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


@given(ITEMS, st.integers(min_value=1, max_value=200))
@settings(max_examples=300)
def test_the_budget_holds_and_nothing_is_lost_without_being_counted(items: list[ContextItem], budget: int) -> None:
    rendered = render_context(items, budget, count_tokens, ContextPolicy())
    assert rendered.token_count == count_tokens(rendered.text) <= budget
    assert len(rendered.memory_ids) + rendered.omitted == len(items)
    assert [one.memory_id for one in items if one.memory_id in rendered.memory_ids] == list(rendered.memory_ids)


@given(ITEMS)
@settings(max_examples=300)
def test_one_memory_is_one_line_between_the_only_two_markers(items: list[ContextItem]) -> None:
    rendered = render_context(items, 100_000, count_tokens, ContextPolicy())
    first, *lines, last = rendered.text.splitlines()
    assert (first, last, len(lines)) == (OPEN, CLOSE, len(items))
    for line in lines:
        assert not re.search(r"[\[［]\W*memory\W*_?\W*context", line, re.IGNORECASE)
