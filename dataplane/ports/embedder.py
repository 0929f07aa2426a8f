"""The port of the embedder."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.model import Vector
from dataplane.ports.backend import Backend


class Embedder(Backend, Protocol):
    """Turns text into vectors off the event loop. Raises BackendUnavailable("embedder") when it cannot."""

    @property
    def model(self) -> str:
        """Name and version of the model; embeddings of different models never meet."""
        ...

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        ...

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One unit vector a text, as questions. Texts are cut at the model's length."""
        ...

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One unit vector a text, as memories. Texts are cut at the model's length."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text as the model counts, without special ones. Texts may be long; the cost is linear."""
        ...

    def calibrate(self, cosine: float) -> float:
        """Maps a raw cosine of two passages to the calibrated similarity, 0 to 1, rising; 0.95: the same statement."""
        ...

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """How much memories say about a question, 0 to 1 each, in order, from their raw cosines with it.

        0.5 = as likely relevant as not among memories of which few are. For one question strictly rising with the
        cosine, so the order by cosine is kept; across questions comparable, whatever their language.
        """
        ...
