"""A text in which one sort of digits, letters, dashes and spaces stands for all, with every offset where it was.

Full-width forms (U+FF01 to U+FF5E) become ASCII, every decimal digit of any script becomes 0 to 9, dashes become `-`,
spaces become ` `. Each character becomes exactly one, so that what is found in the folded text stands at the same place
in the given one.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Final

_DASHES: Final = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_SPACES: Final = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DIGIT: Final = re.compile(r"[0-9]")
_LAST_DIGIT: Final = 0x20000
"""All decimal digits of Unicode 16 lie below."""

_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_\-+/=.~:]{16}")


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text, and what tells quickly which detectors can find nothing in it.

    `lowered` is for looking up words, not for offsets. `digits` counts those of the text; `has_long_word`: 16
    characters in a row that keys are made of.
    """

    text: str
    lowered: str
    digits: int
    has_long_word: bool

    def says(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words, in lower case, stands anywhere."""
        return any(word in self.lowered for word in words)


def fold(given: str) -> Folded:
    """The text folded; as long as the given one."""
    text = given if given.isascii() else given.translate(_table())
    return Folded(text, text.lower(), len(_DIGIT.findall(text)), _LONG_WORD.search(text) is not None)


@cache
def _table() -> dict[int, str]:
    digits = {code: str(unicodedata.decimal(chr(code))) for code in range(0x80, _LAST_DIGIT) if chr(code).isdecimal()}
    wide = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    return digits | wide | {ord(dash): "-" for dash in _DASHES} | {ord(space): " " for space in _SPACES}
