"""A text in which one sort of digits, letters, dashes and spaces stands for all, with every offset where it was.

Full-width forms (U+FF01 to U+FF5E) become ASCII, every decimal digit of any script becomes 0 to 9, dashes become `-`,
spaces become ` `. Each character becomes exactly one, so that what is found in the folded text stands at the same place
in the given one.
"""

import sys
import unicodedata
from functools import cache

_DASHES = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def folded(text: str) -> str:
    """The text folded; as long as the given one."""
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, str]:
    digits = {
        code: str(unicodedata.decimal(chr(code)))
        for code in range(0x80, sys.maxunicode + 1)
        if chr(code).isdecimal()
    }
    wide = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    return digits | wide | {ord(dash): "-" for dash in _DASHES} | {ord(space): " " for space in _SPACES}
