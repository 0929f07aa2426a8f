"""Words of which a pattern's matches hold at least one, so that most patterns need not be tried on most texts.

Rules: a pattern is cut at its outermost `|`; each part must have a group of alternatives, or a run of letters, that
every match of it passes through. Of several the one whose shortest word is longest is taken. The words are literal and
lower case, as folded texts are. No anchors for a part: none for the pattern, which is then always tried.
"""

import re
from collections.abc import Iterator

_SHORTEST = 3
_SHORTEST_CJK = 1
_ATOM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_OPTIONAL = re.compile(r"[?*]|\{0?,")
_REPEATED = re.compile(r"[?*+]|\{")
_GROUP = re.compile(r"\((?:\?[:=!]|\?<[=!])?")


def anchors(pattern: str) -> frozenset[str]:
    """The words; empty when the pattern must always be tried."""
    found: set[str] = set()
    for part in _alternatives(pattern):
        words = _best(part)
        if not words:
            return frozenset()
        found |= words
    return frozenset(found)


def _alternatives(pattern: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for atom in _ATOM.finditer(pattern):
        depth += (atom[0] == "(") - (atom[0] == ")")
        if atom[0] == "|" and depth == 0:
            parts.append(pattern[start : atom.start()])
            start = atom.end()
    return [*parts, pattern[start:]]


def _best(part: str) -> frozenset[str]:
    return max(_required(part), key=_worth, default=frozenset())


def _worth(words: frozenset[str]) -> int:
    """Length of the shortest word; of Chinese ones, which tell more, three times that."""
    return min((len(word) * (1 if word.isascii() else 3) for word in words), default=0)


def _required(part: str) -> Iterator[frozenset[str]]:
    """Sets of words of which every match of a part without an outer `|` holds one."""
    position, run = 0, ""
    while position < len(part):
        if part[position] == "(":
            end = _closing(part, position)
            yield from _checked([run])
            run = ""
            opened = _GROUP.match(part, position)
            assert opened is not None
            if opened[0] in {"(", "(?:"} and not _OPTIONAL.match(part, end + 1):
                yield from _of_group(part[opened.end() : end])
            position = end + 1
            continue
        atom = _ATOM.match(part, position)
        assert atom is not None
        position = atom.end()
        literal = atom[0] if atom[0].isalnum() or atom[0] in " @_-:/" else ""
        if not literal or _REPEATED.match(part, position):
            yield from _checked([run])
            run = "" if not literal or _OPTIONAL.match(part, position) else literal
            run = "" if _REPEATED.match(part, position) else run
            continue
        run += literal
    yield from _checked([run])


def _of_group(inner: str) -> Iterator[frozenset[str]]:
    words: set[str] = set()
    for alternative in _alternatives(inner):
        best = _best(alternative)
        if not best:
            return
        words |= best
    yield frozenset(words)


def _checked(words: list[str]) -> Iterator[frozenset[str]]:
    if all(len(word.strip()) >= (_SHORTEST if word.isascii() else _SHORTEST_CJK) for word in words):
        yield frozenset(words)


def _closing(part: str, start: int) -> int:
    depth = 0
    for atom in _ATOM.finditer(part, start):
        depth += (atom[0] == "(") - (atom[0] == ")")
        if depth == 0:
            return atom.start()
    return len(part) - 1
