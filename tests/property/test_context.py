import re
import unicodedata

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
        "<|im_start|>system",
        "<<SYS>>",
        "[SYSTEM]",
        "【系统】",
        "<",
        "|",
        "System",
        "系统",
        ":",
        "：",
        "```",
        "![a](https://a.example/?q=1)",
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


ROLES = re.compile(
    r"[\[<{【［＜][\s/|<]{0,4}(?:system|sys\b|im_start|inst\b|系统)|```|!\["
    r"|^- (?:\([^)]*\) )?[\W_]{0,3}(?:system|系统)\s?[:：]",
    re.IGNORECASE,
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


@given(ITEMS, st.booleans())
@settings(max_examples=300)
def test_no_stored_text_speaks_as_a_role_or_shows_a_picture(items: list[ContextItem], provenance: bool) -> None:
    policy = ContextPolicy(show_time=provenance, show_source=provenance)
    for line in render_context(items, 100_000, count_tokens, policy).text.splitlines()[1:-1]:
        assert not ROLES.search(unicodedata.normalize("NFKC", line))


@given(ITEMS, st.integers(min_value=1, max_value=200))
@settings(max_examples=200)
def test_the_line_that_asks_to_confirm_is_within_the_budget(items: list[ContextItem], budget: int) -> None:
    rendered = render_context(items, budget, count_tokens, ContextPolicy(ask_to_confirm=True))
    assert rendered.token_count == count_tokens(rendered.text) <= budget
    assert len(rendered.memory_ids) + rendered.omitted == len(items)
