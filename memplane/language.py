"""Which language a text is in, as far as the maps from cosines differ by it."""

import re

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
CHARACTERS_A_WORD = 2
"""Chinese characters that count as one word."""


def is_chinese(text: str) -> bool:
    """True when at least half of the words are Chinese; names and identifiers in Latin letters are common there."""
    han, latin = len(_HAN.findall(text)), len(_LATIN_WORD.findall(text))
    return han > 0 and han >= CHARACTERS_A_WORD * latin
