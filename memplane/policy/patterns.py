r"""Which regular expressions a write rule may use, so that no text can make one run for seconds.

Rules, checked on the pattern's text alone:
1. it compiles;
2. a repeated group holds no repeat and no alternative of its own: `(a+)+`, `(a|b)*` and `(a?){9}` are refused, because
   a backtracking matcher may try every way to divide the text between the two; `(?:abc)+` and `(?:\d{3}-)+` pass;
3. at most three open-ended repeats (`*`, `+`, `{n,}`), because each one multiplies the time by the text's length.
Write `[^。]{0,40}` rather than `.*`.
"""

import re
from dataclasses import dataclass

MAX_OPEN_REPEATS = 3

_TOKEN = re.compile(
    r"""
      (?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<comment>\(\?\#[^)]*\))
    | (?P<open>\((?:\?(?:P<\w+>|P=|[:=!>]|<[=!]|\(\w+\)|[aiLmsux-]+[:)]))?)
    | (?P<close>\))
    | (?P<either>\|)
    | (?P<repeat>[*+?]|\{\d*,\d*\}|\{\d+\})[?+]?
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_FIXED = re.compile(r"\{\d+\}")
_OPEN_ENDED = re.compile(r"[*+]|\{\d*,\}")


@dataclass(slots=True)
class _Scan:
    """State of one reading of a pattern: whether each open group varies, and what was just closed."""

    groups: list[bool]
    closed_varies: bool = False
    after_group: bool = False
    open_repeats: int = 0


def pattern_problem(pattern: str) -> str | None:
    """Why `pattern` may not be used, and what would be right; None when it may."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    scan = _Scan(groups=[False])
    for token in _TOKEN.finditer(pattern):
        if _step(scan, token):
            return (
                "a repeated group holds a repeat or an alternative of its own; use a bounded class such as [^。]{0,40}"
            )
    if scan.open_repeats > MAX_OPEN_REPEATS:
        return f"{scan.open_repeats} open-ended repeats, above {MAX_OPEN_REPEATS}; use bounded ones such as {{0,40}}"
    return None


def _step(scan: _Scan, token: re.Match[str]) -> bool:
    """Takes one token; True when it repeats a group that varies."""
    sort, text = token.lastgroup, token.group()
    if sort == "repeat":
        return _repeat(scan, token.group("repeat"))
    scan.after_group = sort == "close"
    if sort == "open" and not text.endswith(")"):
        scan.groups.append(False)
    elif sort == "close" and len(scan.groups) > 1:
        scan.closed_varies = scan.groups.pop()
        scan.groups[-1] |= scan.closed_varies
    elif sort == "either":
        scan.groups[-1] = True
    return False


def _repeat(scan: _Scan, text: str) -> bool:
    refused = scan.after_group and scan.closed_varies and text != "?"
    scan.open_repeats += _OPEN_ENDED.fullmatch(text) is not None
    scan.groups[-1] |= _FIXED.fullmatch(text) is None
    scan.after_group = False
    return refused
