"""SentencePiece's unigram tokenizer (Kudo, 2018): the likeliest way to cut a text into pieces of a vocabulary.

Characters are replaced by their normal form, runs of spaces become one, and `▁` stands for a space, also before the
first word. No piece has `▁` but at its beginning, so each word is cut by itself and its pieces can be remembered.
"""

import re
from functools import lru_cache

from dataplane.adapters.embedder.e5_file import Vocabulary

SPACE = "▁"
KNOWN_WORDS = 20_000
"""So many words have their pieces remembered; a text of common words then costs a look-up each."""
REMEMBERED_CHARACTERS = 24
"""Longer words seldom come again: Chinese is one word up to its next space."""
_SPACES = re.compile(" +")
UNKNOWN_PENALTY = 10.0
"""A character without a piece is this much less likely than the rarest piece; as SentencePiece has it."""


class Unigram:
    """Turns texts into the ids of a vocabulary. Safe for several threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        scores = vocabulary.scores.tolist()
        self._ids = {piece: index for index, piece in enumerate(vocabulary.pieces) if index != vocabulary.unknown}
        self._scores = scores
        self._unknown = vocabulary.unknown
        self._unknown_score = min(scores) - UNKNOWN_PENALTY
        self._longest = max(map(len, vocabulary.pieces))
        self._normal = dict(vocabulary.normal)
        self._remembered = lru_cache(KNOWN_WORDS)(self._cut)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without those that begin and end it."""
        normal = _SPACES.sub(" ", text.translate(self._normal)).removeprefix(" ")
        found: list[int] = []
        for word in normal.split(" "):
            cut = self._remembered if len(word) < REMEMBERED_CHARACTERS else self._cut
            found.extend(cut(SPACE + word))
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        """Viterbi: the best way to each end, from the best ways to the ends before it."""
        length = len(word)
        best = [0.0] + [float("-inf")] * length
        came: list[tuple[int, int]] = [(0, self._unknown)] * (length + 1)
        for start in range(length):
            self._extend(word, start, best, came)
        found = []
        end = length
        while end:
            end, piece = came[end]
            found.append(piece)
        return tuple(reversed(found))

    def _extend(self, word: str, start: int, best: list[float], came: list[tuple[int, int]]) -> None:
        reached, ids, scores = best[start], self._ids, self._scores
        for end in range(start + 1, min(start + self._longest, len(word)) + 1):
            piece = ids.get(word[start:end])
            if piece is not None and reached + scores[piece] > best[end]:
                best[end] = reached + scores[piece]
                came[end] = (start, piece)
        if reached + self._unknown_score > best[start + 1]:
            best[start + 1] = reached + self._unknown_score
            came[start + 1] = (start, self._unknown)
