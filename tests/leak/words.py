"""Marker words: made up, each once in a run, planted in everything that a caller writes and looked for in every answer.

They are lower-case letters alone, so that no normalising, tokenizing or masking changes them.
"""

import base64
import binascii
import random
import re
from collections.abc import Iterator

MARKER = re.compile(rb"zaq(?:[bdfgklmnprst][aeiou]){6}")
MEMORY_ID = re.compile(rb"mem_[0-9a-f]{32}")
OPERATION = re.compile(rb"operations/[A-Za-z0-9_-]{8,100}")
_HEX = "0123456789abcdef"
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{24,}")


class Words:
    """Makes markers, and ids that nobody has."""

    def __init__(self, draw: random.Random):
        self._draw = draw
        self._made: set[str] = set()

    def marker(self) -> str:
        """One that was not made before."""
        while True:
            syllables = (self._draw.choice("bdfgklmnprst") + self._draw.choice("aeiou") for _ in range(6))
            word = "zaq" + "".join(syllables)
            if word not in self._made:
                self._made.add(word)
                return word

    def memory_id(self) -> str:
        """One that no memory has."""
        return f"mem_{self._draw.getrandbits(128):032x}"

    def operation_like(self, name: str) -> str:
        """A name of the same form and length: each hex digit behind the last "/" or "-" drawn anew."""
        place = max(name.rfind("/"), name.rfind("-")) + 1
        drawn = (self._draw.choice(_HEX) if sign in _HEX else sign for sign in name[place:])
        return name[:place] + "".join(drawn)


def unfolded(answer: bytes) -> bytes:
    """The answer, and behind it whatever base64 hides in it (page tokens)."""
    return b"\n".join((answer, *_decoded(answer)))


def _decoded(answer: bytes) -> Iterator[bytes]:
    for found in _TOKEN.finditer(answer):
        token = found.group()
        for start in range(4):  # where the token begins is not known: a field's length may look like a sign of it
            part = token[start:]
            try:
                yield base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))
            except (binascii.Error, ValueError):
                continue
