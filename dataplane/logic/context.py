"""The block of memories for a prompt.

    [MEMORY_CONTEXT]
    - (2026-05-01, USER) I am allergic to peanuts.
    - (2026-05-03, LLM, unsure) Prefers tea.
    [/MEMORY_CONTEXT]

Rules. One memory is one line: runs of whitespace in its text become one space. No text opens or closes a block: a
bracket of any width before the block's name, however that is spaced, cased or lettered, becomes a parenthesis. The
whole block, markers included, takes at most `token_budget` tokens. Memories come in the order given; one that does not
fit is left out and counted, and a smaller one after it may still fit.
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
    return _fitted(chosen, len(items), token_budget, count_tokens)


def _fitted(
    chosen: list[tuple[str, str]], offered: int, token_budget: int, count_tokens: Callable[[str], int]
) -> RenderedContext:
    """The block of as many lines as truly fit: a tokenizer may count the whole as more than its parts."""
    for kept in range(len(chosen), -1, -1):
        text = _block([line for _, line in chosen[:kept]])
        token_count = count_tokens(text)
        if token_count <= token_budget:
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
    if item.confidence < policy.low_confidence_note:
        notes.append("unsure")
    said = f"({', '.join(notes)}) " if notes else ""
    return f"- {said}{_harmless(_WHITESPACE.sub(' ', item.content).strip())}"


def _harmless(content: str) -> str:
    """The content with every bracket that could begin a marker of the block made a parenthesis."""
    folded = _folded(content)
    for marker in _MARKER.finditer(folded):
        content = f"{content[: marker.start()]}({content[marker.end() :]}"
    return content


def _folded(content: str) -> str:
    """The content with letters of other widths and look-alikes as plain ones; every character keeps its place."""
    if content.isascii():
        return content
    return "".join(map(_plain, content.translate(_LOOKALIKES)))


def _plain(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 else character
