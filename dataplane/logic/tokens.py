"""The tokens of a text, for every text index: we segment, the index splits at white space.

Rules. Text is folded first (NFKC, case). Compounds (`INV-2024/0031`, `ann@shop.example`, `self-care`) are one token;
those that name something (they hold a digit, `_` or `@`, and are no date, time or decimal) are *identifiers*. An index
holds a compound and its parts; a query asks for an identifier by its whole token alone, so that `X-200` finds neither
`X-2000` nor every other thing numbered 200. Chinese is cut into words; an index also holds each pair of neighbouring
characters, so that a word is found where the segmenter cut the memory otherwise than the query. English words are
stemmed. Nothing is dropped as a stop word: BM25 weighs those down by itself.
"""

import re
import unicodedata
from collections.abc import Iterator

import rjieba
from Stemmer import Stemmer

TOKENIZER = "memplane-1"
"""Names these rules: an index filled under another name must be filled again."""
MAX_TOKEN_LENGTH = 128
"""Characters of a token that count; longer ones are cut, in memories and queries alike."""

_COMPOUND = re.compile(r"[a-z0-9]+(?:[-_/.@][a-z0-9]+)+")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = "\u3040-\u30ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Kana, Thai, Lao, Burmese, Khmer: written without spaces, and without a segmenter here."""
_PIECE = re.compile(
    rf"(?P<compound>{_COMPOUND.pattern})|(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<word>[^\W_{_HAN}{_UNSPACED}]+)"
)
_NUMERIC = re.compile(r"\d{1,4}(?:[-/.]\d{1,4}){1,2}")
_NAMING = re.compile(r"[\d_@]")
_PARTS = re.compile(r"[-_/.@]")


def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a memory, in order, with repeats. None holds white space. Empty for a text without words."""
    return _cut(token for piece in _PIECE.finditer(_folded(text)) for token in _indexed(piece))


def query_tokens(text: str) -> tuple[str, ...]:
    """The distinct tokens that a query asks for, in order."""
    return tuple(dict.fromkeys(_cut(token for piece in _PIECE.finditer(_folded(text)) for token in _asked(piece))))


def identifiers(text: str) -> tuple[str, ...]:
    """The distinct identifiers in a text as index and query hold them, in order."""
    found = (match.group() for match in _COMPOUND.finditer(_folded(text)) if _is_identifier(match.group()))
    return tuple(dict.fromkeys(_cut(found)))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _cut(found: Iterator[str]) -> tuple[str, ...]:
    return tuple(token[:MAX_TOKEN_LENGTH] for token in found)


def _indexed(piece: re.Match[str]) -> list[str]:
    text = piece.group()
    if piece.lastgroup == "compound":
        return [text, *_stemmed(_PARTS.split(text))]
    if piece.lastgroup == "han":
        words = rjieba.cut_for_search(text)
        return [word for word in words if len(word) != 2] + _pairs(text)
    if piece.lastgroup == "unspaced":
        return _pairs(text) or [text]
    return _stemmed([text])


def _asked(piece: re.Match[str]) -> list[str]:
    text = piece.group()
    if piece.lastgroup == "compound" and _is_identifier(text):
        return [text]
    if piece.lastgroup == "han":
        return list(rjieba.cut_for_search(text))
    return _indexed(piece)


def _is_identifier(compound: str) -> bool:
    return _NAMING.search(compound) is not None and _NUMERIC.fullmatch(compound) is None


def _pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)]


def _stemmed(words: list[str]) -> list[str]:
    # Porter 2 (snowballstem.org). A stemmer is not thread-safe; a new one costs 1 µs without its cache.
    return [str(word) for word in Stemmer("english", 0).stemWords(words)]
