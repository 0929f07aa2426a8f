"""Who says a memory, and whether it asks or tells.

A question that names one of several speakers ("What did Caroline research?") asks for what that one said. It names a
speaker by the whole name or by its first word, as a word where the script has spaces between words; names of roles
(`user`, `assistant`) are words like any others. Where every speaker is named, none stands out.
"""

import re
from collections.abc import Set as AbstractSet

_ROLE_WORDS = """
user assistant system agent human ai bot model tool me you 用户 助手 系统 我 你
"""
ROLES = frozenset(_ROLE_WORDS.split())
_SHORTEST_NAME = 2
_QUESTION_MARKS = ("?", "\uff1f")
_CLOSING = "\"'”’」』)）】… \n\t"
_SPACED = re.compile(r"[\x00-\u024f]+")
"""Scripts with spaces between words."""


def named_speakers(query: str, speakers: AbstractSet[str]) -> frozenset[str]:
    """Those of the speakers that the query names; none where it names all of them."""
    folded = query.casefold()
    named = frozenset(speaker for speaker in speakers if _names(folded, speaker.casefold().strip()))
    return frozenset() if named == frozenset(speakers) else named


def asks(text: str) -> bool:
    """True for a text that ends with a question."""
    return text.rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def _names(query: str, speaker: str) -> bool:
    words = speaker.split()
    return any(_mentions(query, name) for name in {speaker, words[0] if words else ""})


def _mentions(query: str, name: str) -> bool:
    if len(name) < _SHORTEST_NAME or name in ROLES:
        return False
    if not _SPACED.fullmatch(name):
        return name in query
    return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", query) is not None
