"""How the bytes of a packed row look on the disk of an index that keeps rows as base64."""

import base64


def row_with(word: bytes) -> bytes:
    """A row that holds a word, of 9 bytes at least, among others."""
    return b'{"head":{}}' + word + b" and what else it said"


def traces_of(word: bytes) -> set[bytes]:
    """The part of the word that stands in any row's text, for each place in a group of three at which it may begin."""
    return {base64.b64encode(b"." * shift + word)[4:-4] for shift in range(3)}
