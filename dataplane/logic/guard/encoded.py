r"""Texts hidden in a text: what base64, base32, hex, binary, ascii85, escapes (percent, `\u`, HTML) and tags say.

Rules: only what decodes to readable text counts (UTF-8, 80 of 100 characters letters, digits or common signs); at most
MOST_PIECES pieces of MOST_CHARACTERS characters are looked at, so that the cost is linear in the length of the text.
rot13 and reversed writing are read only where a text speaks of them, for every text has such a reading.
"""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from itertools import islice
from urllib.parse import unquote

MOST_PIECES = 8
MOST_CHARACTERS = 4_096
_READABLE = 0.8

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,8192}={0,2}")
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{16,8192}={0,6}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:0x)?(?:[0-9A-Fa-f]{2}[ :,]?){8,4096}(?![0-9A-Fa-f])")
_BINARY = re.compile(r"(?<![01])(?:[01]{8}[ ,]?){2,4096}(?![01])")
_ASCII85 = re.compile(r"<~([!-u\s]{10,8192})~>")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}){6,2048}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.~-]{0,8}){4,2048}")
_ENTITIES = re.compile(r"(?:&#x?[0-9A-Fa-f]{2,6};[ ]?){4,1024}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,8192}")
_CUE_ROT13 = re.compile(r"rot[ -]?13|caesar|凯撒", re.IGNORECASE)
_CUE_REVERSED = re.compile(r"revers|backward|倒过来|反过来|倒着|从后往前", re.IGNORECASE)
_COMMON = frozenset(" \n\t.,;:!?'\"-_()/@[]{}<>#%&*=+|，。！？；：、“”‘’（）")


def hidden_texts(text: str) -> Iterator[tuple[str, str]]:
    """(encoding, what it says) of each readable piece, at most MOST_PIECES of an encoding."""
    for name, pattern, decode in _DECODERS:
        for found in islice(pattern.finditer(text), MOST_PIECES):
            said = _readable(decode(found[0][: 2 * MOST_CHARACTERS]))
            if said:
                yield name, said
    head = text[:MOST_CHARACTERS]
    if _CUE_ROT13.search(head):
        yield "rot13", codecs.decode(head, "rot13")
    if _CUE_REVERSED.search(head):
        yield "reversed", head[::-1]


def _readable(decoded: str) -> str:
    decoded = decoded.strip("\x00\ufffd \n")[:MOST_CHARACTERS]
    if len(decoded) < 4:
        return ""
    good = sum(character.isalnum() or character in _COMMON for character in decoded)
    return decoded if good >= _READABLE * len(decoded) and "\ufffd" not in decoded else ""


def _bytes(decode: Callable[[str], bytes]) -> Callable[[str], str]:
    def decoded(piece: str) -> str:
        try:
            return decode(piece).decode("utf-8")
        except (ValueError, binascii.Error):
            return ""

    return decoded


def _base64(piece: str) -> bytes:
    plain = piece.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[:-1] if len(plain) % 4 == 1 else plain
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _base32(piece: str) -> bytes:
    plain = piece.rstrip("=")
    return base64.b32decode(plain + "=" * (-len(plain) % 8))


def _hex(piece: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|[ :,]", "", piece))


def _binary(piece: str) -> bytes:
    return bytes(int(group, 2) for group in re.findall("[01]{8}", piece))


def _ascii85(piece: str) -> bytes:
    return base64.a85decode(piece, adobe=True)


def _escapes(piece: str) -> str:
    return re.sub(r"\\[ux]([0-9A-Fa-f]{2,4})", lambda found: chr(int(found[1], 16)), piece)


def _tags(piece: str) -> str:
    return "".join(chr(ord(character) - 0xE0000) for character in piece)


_DECODERS: tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...] = (
    ("base64", _BASE64, _bytes(_base64)),
    ("base32", _BASE32, _bytes(_base32)),
    ("hex", _HEX, _bytes(_hex)),
    ("binary", _BINARY, _bytes(_binary)),
    ("ascii85", _ASCII85, _bytes(_ascii85)),
    ("escapes", _ESCAPES, _escapes),
    ("percent", _PERCENT, unquote),
    ("entities", _ENTITIES, html.unescape),
    ("tags", _TAGS, _tags),
)
