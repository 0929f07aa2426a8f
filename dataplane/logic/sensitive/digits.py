"""Numbers as people write them: groups of digits with a space, hyphen or dot between.

A `Window` is a number that may be meant: groups of one chain with one sort of separator, at most 24 digits. Groups of
one or two digits count only as a whole chain, so that a chain of n digits has at most 8 n / 3 windows and the work is
linear.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_DIGITS: Final = 24
"""Longer numbers are none that we know: the longest card has 19."""

_UNCALLED: Final = frozenset((9, *range(12, 20)))
"""How many digits those numbers have that need no name: social security numbers, cards, ID cards."""

_GROUP: Final = re.compile(r"[0-9]+")
_SEPARATORS: Final = frozenset((" ", "-", ".", "·", "  ", " - ", "_", "/"))


@dataclass(frozen=True, slots=True)
class Group:
    """A run of digits at text[start:end]."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """How many digits."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Window:
    """Groups that may be one number; `digits` are theirs together, `sizes` how many each has.

    `leads`: it begins its chain. Others have digits right before them, and so no label that could be theirs.
    """

    start: int
    end: int
    digits: str
    sizes: tuple[int, ...]
    separator: str
    leads: bool


def chains(text: str) -> Iterator[tuple[list[Group], list[str]]]:
    """Groups that separators join, and those separators (one fewer). Text is folded."""
    groups: list[Group] = []
    separators: list[str] = []
    for match in _GROUP.finditer(text):
        group = Group(match.start(), match.end())
        between = text[groups[-1].end : group.start] if groups and group.start - groups[-1].end <= 3 else None
        if between in _SEPARATORS:
            separators.append(between)
        elif groups:
            yield groups, separators
            groups, separators = [], []
        groups.append(group)
    if groups:
        yield groups, separators


def windows(text: str, groups: Sequence[Group], separators: Sequence[str]) -> Iterator[Window]:
    """The numbers that may be meant by a chain, not glued to letters, stars or underscores on their left."""
    if len(groups) > 1 and groups[0].size < 3:
        if groups[-1].end - groups[0].start <= 3 * MOST_DIGITS and len(set(separators)) == 1:
            yield from _window(text, groups, separators[0], leads=True)
        return
    for first, group in enumerate(groups):
        if group.size >= 3 and group.size <= MOST_DIGITS:
            yield from _from(text, groups, separators, first)


def _from(text: str, groups: Sequence[Group], separators: Sequence[str], first: int) -> Iterator[Window]:
    total, last = groups[first].size, first
    yield from _window(text, groups[first : first + 1], "", leads=first == 0)
    while last < len(separators) and separators[last] == separators[first] and groups[last].size >= 2:
        last += 1
        total += groups[last].size
        if total > MOST_DIGITS:
            return
        if first and total not in _UNCALLED:
            continue
        yield from _window(text, groups[first : last + 1], separators[first], leads=first == 0)


def _window(text: str, groups: Sequence[Group], separator: str, *, leads: bool) -> Iterator[Window]:
    start, end = groups[0].start, groups[-1].end
    digits = "".join(text[group.start : group.end] for group in groups)
    if len(digits) <= MOST_DIGITS and not is_glued_left(text, start) and not is_glued_right(text, end):
        yield Window(start, end, digits, tuple(group.size for group in groups), separator, leads)


def is_glued_left(text: str, start: int) -> bool:
    """Whether what stands before is of the same word: an ASCII letter, `_`, a masked form, or a decimal point."""
    if start == 0:
        return False
    last, before = text[start - 1], text[max(0, start - 2) : start - 1]
    return _is_wordy(last) or (last == "." and before.isdecimal()) or (last in " -." and before == "*")


def is_glued_right(text: str, end: int) -> bool:
    """Likewise of what stands behind; `X` alone may end an ID card's number."""
    if end >= len(text):
        return False
    return _is_wordy(text[end]) and not (text[end] in "xX" and not _is_wordy(text[end + 1 : end + 2]))


def _is_wordy(letter: str) -> bool:
    return letter.isascii() and (letter.isalpha() or letter in "_*") and letter != ""
