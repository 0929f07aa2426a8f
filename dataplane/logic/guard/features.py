"""Cheap features of a text that no rule of words can tell; each linear in its length.

- invisible: zero-width characters beyond one in fifty, tag characters, overridden writing direction;
- flood: one thing said over and over, so that the model forgets what came before: the first 16 KiB compress to less
  than 15 %;
- embedded: a letter or page whose first or last line asks for something else (after BIPIA, Yi et al. 2023).
"""

import re
import zlib
from dataclasses import dataclass

from dataplane.logic.guard.reading import fold

_ZERO_WIDTH = re.compile("[\u200b\u2060-\u2064\ufeff\u180e\u00ad]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAG = re.compile("[\U000e0020-\U000e007e]{4}")
_DOCUMENT = re.compile(
    r"(?i)\bsubject ?:|\breceived date ?:|\bfrom ?:|^(?:hi|hello|dear) [a-z]{2,20},|unsubscribe|kind regards"
    r"|主题[:：]|发件人|此致|尊敬的"
)
_REQUEST = re.compile(
    r"(?:please )?(?:explain|translate|describe|list|define|calculate|provide|write|generate|compose|summari[sz]e"
    r"|tell me|give me|create|what(?:'s| is| are| was| were)|how (?:do|does|can|would|to)|who (?:is|was)"
    r"|why (?:is|do|does)|can you (?:show|explain|tell|write|give)"
    r"|(?:rearrange|anagram|scramble|replace|convert|group|remove) )"
    r"|(?:请)?(?:解释|翻译|描述|列出|计算|写一|生成|总结|告诉我|给我)"
)
_LONGEST_REQUEST = 160
_SHORTEST_BODY = 120
_FLOOD_FROM = 200
_FLOOD_RATIO = 0.15
_FLOOD_BYTES = 16_384
"""Lengths and ratio: the emails and turns of 2026-11, see docs/quality/guard.md."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A reason to suspect: its name, its score (0 to 1), and the words that gave it (at most 80 characters)."""

    name: str
    score: float
    evidence: str


def features(text: str) -> list[Signal]:
    """The signals of the features above."""
    found = [] if text.isascii() else _invisible(text)
    request = _outside_request(text)
    if request:
        found.append(Signal("embedded", 0.5, request[:80]))
    if _is_flooded(text):
        found.append(Signal("flood", 0.5, "one thing said over and over"))
    return found


def _invisible(text: str) -> list[Signal]:
    found = []
    if len(_ZERO_WIDTH.findall(text)) > max(2, len(text) // 50):
        found.append(Signal("invisible", 0.4, "characters that draw nothing"))
    if _TAG.search(text):
        found.append(Signal("invisible", 0.6, "tag characters"))
    if _BIDI.search(text):
        found.append(Signal("invisible", 0.4, "writing direction overridden"))
    return found


def _outside_request(text: str) -> str:
    """A first or last line of a letter or page that asks for something else; "" when there is none."""
    lines = text.strip().split("\n") if len(text) >= _SHORTEST_BODY else []
    if len(lines) < 2 or not _DOCUMENT.search(text):
        return ""
    for line in (lines[0], lines[-1]):
        asked = fold(line[: _LONGEST_REQUEST + 1]).strip()
        if len(line) <= _LONGEST_REQUEST and _REQUEST.match(asked):
            return asked
    return ""


def _is_flooded(text: str) -> bool:
    if len(text) < _FLOOD_FROM:
        return False
    data = text[:_FLOOD_BYTES].encode("utf-8", "surrogatepass")
    return len(zlib.compress(data, 1)) < _FLOOD_RATIO * len(data)
