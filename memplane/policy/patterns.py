r"""Which regular expressions a write rule may use, so that no text can make one run for seconds.

Rules, checked on the pattern's text alone:
1. it compiles, has no `x` flag, and no set that a later Python may read otherwise (`[[`, `--`, `&&`, `~~`, `||`);
2. a repeated group holds no repeat and no alternative of its own: `(a+)+`, `(a|b)*` and `(a?){9}` are refused, because
   a backtracking matcher may try every way to divide the text between the two; `(?:abc)+` and `(?:\d{3}-)+` pass;
3. the upper bounds of all repeats multiply to at most MAX_WAYS, where an open-ended one (`*`, `+`, `{n,}`) counts as
   OPEN_WAYS, `?` as 2 and an exact one (`{3}`) as 1: a search tries about that many ways at each place of the text.
So one open-ended repeat and two `?`, or two of `{0,100}`. Write `[^。]{0,40}` rather than `.*`, and two rules rather
than `a+|b+`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_WAYS = 10_000
"""`\\w{0,100}\\w{0,100}x`, which is at this bound, takes 0.5 s on 10,000 characters without an x (2026-11)."""
OPEN_WAYS = 2_500
"""`\\w+x` takes 0.2 s on the same text."""

_TOKEN = re.compile(
    r"""
      (?P<escape>\\.)
    | (?P<set>\[\^?+\]?+(?:\\.|[^\]\\])*\])
    | (?P<unclosed>\[)
    | (?P<comment>\(\?\#[^)]*\))
    | (?P<open>\((?:\?(?:P<\w+>|P=|[:=!>]|<[=!]|\(\w+\)|[aiLmsux-]+[:)]))?)
    | (?P<close>\))
    | (?P<either>\|)
    | (?P<repeat>[*+?]|\{\d*,\d*\}|\{\d+\})[?+]?
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_AMBIGUOUS = re.compile(r"^\[\^?\[|--|&&|~~|\|\|")
_VERBOSE = re.compile(r"\(\?[aiLmsu]*x")
_BOUND = re.compile(r"\{(?P<exact>\d+)\}|\{\d*,(?P<most>\d+)\}|(?P<optional>\?)")


@dataclass(slots=True)
class _Scan:
    """State of one reading of a pattern: whether each open group varies, and what was just closed."""

    groups: list[bool]
    closed_varies: bool = False
    after_group: bool = False
    ways: int = 1


@lru_cache(maxsize=1024)  # a policy asks for the same few patterns once per override
def pattern_problem(pattern: str) -> str | None:
    """Why `pattern` may not be used, and what would be right; None when it may."""
    tokens = list(_TOKEN.finditer(pattern))
    problem = _unclear(tokens) or _compile_problem(pattern)
    if problem is not None:
        return problem
    scan = _Scan(groups=[False])
    for token in tokens:
        if _step(scan, token):
            return "a repeated group holds a repeat or an alternative of its own; use a bounded class like [^。]{0,40}"
    if scan.ways > MAX_WAYS:
        return "too many repeats for one pattern; bound them, such as \\s{0,3} for \\s*, or make two rules of it"
    return None


def _unclear(tokens: Sequence[re.Match[str]]) -> str | None:
    for token in tokens:
        if token.lastgroup == "set" and _AMBIGUOUS.search(token.group()):
            return f"the set {token.group()[:40]} can be read two ways; put a backslash before its special characters"
        if token.lastgroup == "unclosed":
            return "not a regular expression: a set without its closing ]"
        if token.lastgroup == "open" and _VERBOSE.match(token.group()):
            return "the x flag is not taken; write the pattern without spaces and comments"
    return None


def _compile_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    return None


def _step(scan: _Scan, token: re.Match[str]) -> bool:
    """Takes one token; True when it repeats a group that varies."""
    sort, text = token.lastgroup, token.group()
    if sort == "repeat":
        return _repeat(scan, token.group("repeat"))
    if sort == "comment":
        return False
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
    most = _upper_bound(text)
    refused = scan.after_group and scan.closed_varies and text != "?"
    scan.ways *= most
    scan.groups[-1] |= most > 1
    scan.after_group = False
    return refused


def _upper_bound(repeat: str) -> int:
    """How many ways a repeat may go."""
    bound = _BOUND.fullmatch(repeat)
    if bound is None:
        return OPEN_WAYS
    if bound["exact"] is not None:
        return 1
    return 2 if bound["optional"] is not None else max(1, int(bound["most"]))
