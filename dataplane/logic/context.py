"""The block of memories for a prompt.

    [MEMORY_CONTEXT]
    - (2026-05-01, USER) I am allergic to peanuts.
    - (2026-05-03, LLM, unsure) Prefers tea.
    [/MEMORY_CONTEXT]

Rules. One memory is one line: runs of whitespace in its text become one space. No text opens or closes a block: a
bracket of any width before the block's name, however that is spaced, cased or lettered, becomes a parenthesis. The
whole block, markers included, takes at most `token_budget` tokens. Memories come in the order given; one that does not
fit is left out and counted, and a smaller one after it may still fit.

Nor does a text speak as somebody else: a bracket before the name of a role ([SYSTEM], <|im_start|>, <<SYS>>, 【系统】)
becomes a parenthesis, a colon after one at the start of a text a dash, a code fence quotes; a picture becomes a link,
so that showing the block fetches nothing. With `ask_to_confirm` a last line asks to confirm what is marked unsure.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dataplane.model import Layer, SourceType
from memplane.policy.model import ContextPolicy

OPEN = "[MEMORY_CONTEXT]"
CLOSE = "[/MEMORY_CONTEXT]"
_MARKER = re.compile(
    r"[\[\uff3b\u3010\u3014\u3016\u3018\u301a\u27e6\u2045{<\uff1c\u3008\u300a](?=[\W_]{0,16}"
    + r"[\W_]{0,3}".join(("m", "e", "m", "[o0]", "r", "y", "c", "[o0]", "n", "t", "e", "x", "t"))
    + ")",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"(?:[\[\uff3b\u3010\u3014\u3016{]|[<\uff1c\u3008\u300a]{1,2})(?=[\s/|_]{0,4}"
    r"(?:system|sys\b|inst\b|im_|developer|assistant|user\b|tool\b|endoftext|end_?of|eot|start_header|instructions?\b"
    r"|prompt|script|iframe|!--|\u7cfb\u7edf|\u52a9\u624b|\u6307\u4ee4|\u7ba1\u7406\u5458))",
    re.IGNORECASE,
)
_SPEAKS = re.compile(
    r"^([\W_]{0,6}(?:system|developer|assistant|admin|root|tool|\u7cfb\u7edf|\u52a9\u624b|\u7ba1\u7406\u5458)"
    r"(?: (?:note|message|prompt|update))?[\W_]{0,3}?)\s?[:\uff1a]",
    re.IGNORECASE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_PICTURE = re.compile(r"!(?=\[)")
CONFIRM = "- (note) What is marked unsure should be confirmed with the user before it is relied on."
_LOOKALIKES = str.maketrans("МмЕеОоУуСсТтХхΜΕΟοΥΝΤΧϹϲ", "MmEeOoYyCcTtXxMEOoYNTXCc")
_WHITESPACE = re.compile(r"\s+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US = 253_402_300_799_000_000


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A memory to show. `time_us` None: unknown. `confidence` 0 to 1."""

    memory_id: str
    content: str
    time_us: int | None
    source: SourceType
    confidence: float
    layer: Layer


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens there are, and how they are counted."""

    tokens: int
    count_tokens: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class RenderedContext:
    """The block ("" when not even an empty one fits), the memories in it, how many were left out, its tokens."""

    text: str
    memory_ids: tuple[str, ...]
    omitted: int
    token_count: int


def render_context(
    items: Sequence[ContextItem], token_budget: int, count_tokens: Callable[[str], int], policy: ContextPolicy
) -> RenderedContext:
    """The block of the items that fit `token_budget`."""
    room = token_budget - count_tokens(_block(()))
    chosen: list[tuple[str, str]] = []
    for item in items:
        line = _line(item, policy)
        cost = count_tokens(f"{line}\n")
        if cost <= room:
            chosen.append((item.memory_id, line))
            room -= cost
    ending = [CONFIRM] if policy.ask_to_confirm and any(_is_unsure(item, policy) for item in items) else []
    return _fitted(chosen, ending, len(items), Budget(token_budget, count_tokens))


def _fitted(chosen: list[tuple[str, str]], ending: Sequence[str], offered: int, budget: Budget) -> RenderedContext:
    """The block of as many lines as truly fit: a tokenizer may count the whole as more than its parts."""
    for kept in range(len(chosen), -1, -1):
        text = _block([*(line for _, line in chosen[:kept]), *(ending if kept else ())])
        token_count = budget.count_tokens(text)
        if token_count <= budget.tokens:
            ids = tuple(memory_id for memory_id, _ in chosen[:kept])
            return RenderedContext(text, ids, offered - kept, token_count)
    return RenderedContext("", (), offered, 0)


def _block(lines: Sequence[str]) -> str:
    return "\n".join((OPEN, *lines, CLOSE))


def _line(item: ContextItem, policy: ContextPolicy) -> str:
    notes = []
    if policy.show_time and item.time_us is not None and 0 <= item.time_us <= _LAST_US:
        notes.append((_EPOCH + timedelta(microseconds=item.time_us)).date().isoformat())
    if policy.show_source:
        notes.append(item.source.name)
    if _is_unsure(item, policy):
        notes.append("unsure")
    said = f"({', '.join(notes)}) " if notes else ""
    return f"- {said}{_harmless(_WHITESPACE.sub(' ', item.content).strip())}"


def _is_unsure(item: ContextItem, policy: ContextPolicy) -> bool:
    return item.confidence < policy.low_confidence_note


def _harmless(content: str) -> str:
    """The content with what could end the block, or pass for somebody else's word, made plain."""
    folded = _folded(content)
    marks = {mark.start(): mark.end() for pattern in (_MARKER, _ROLE) for mark in pattern.finditer(folded)}
    kept, start = [], 0
    for begin in sorted(marks):
        if begin >= start:
            kept += [content[start:begin], "("]
            start = marks[begin]
    plain = _FENCE.sub('"', _PICTURE.sub("", "".join(kept) + content[start:]))
    return _unspoken(plain)


def _unspoken(content: str) -> str:
    """The content with a dash for the colon after the name of a role at its start."""
    spoken = _SPEAKS.match(_folded(content))
    return content if spoken is None else f"{content[: spoken.end() - 1]} -{content[spoken.end() :]}"


def _folded(content: str) -> str:
    """The content with letters of other widths and look-alikes as plain ones; every character keeps its place."""
    if content.isascii():
        return content
    return "".join(map(_plain, content.translate(_LOOKALIKES)))


def _plain(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 else character
