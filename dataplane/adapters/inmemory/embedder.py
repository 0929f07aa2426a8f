"""A deterministic embedder without a model, for tests: texts with the same tokens lie near each other."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from dataplane.adapters.inmemory import deadline
from dataplane.logic.tokens import query_tokens
from dataplane.model import Vector
from dataplane.ports import Examination

DIMENSION = 384


class HashEmbedder:
    """Sums a fixed pseudo-random direction for each distinct token of a text and scales to length 1.

    The cosine of two texts is about the share of tokens that they have in common. Queries and passages embed alike.
    """

    @property
    def model(self) -> str:
        """See the port."""
        return "hash-384"

    @property
    def dimension(self) -> int:
        """See the port."""
        return DIMENSION

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        deadline.check("embedder", deadline_s)
        return [_embed(text) for text in texts]

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """See the port."""
        deadline.check("embedder", deadline_s)
        return [_embed(text) for text in texts]

    def count_tokens(self, text: str) -> int:
        """Words, or characters of a text without spaces, divided by two."""
        return max(len(text.split()), len(text) // 5)

    def calibrate(self, cosine: float) -> float:
        """The cosine itself, cut to 0 and 1."""
        return min(1.0, max(0.0, cosine))

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """The cosines themselves, cut to 0 and 1: shared tokens tell as much in any language."""
        return [self.calibrate(cosine) for cosine in cosines]

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        deadline.check("embedder", deadline_s)
        return Examination(self.model)

    async def close(self) -> None:
        """Nothing to let go of."""


def _embed(text: str) -> Vector:
    total = sum((_direction(token) for token in query_tokens(text)), start=_direction(""))
    return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


def _direction(token: str) -> Vector:
    bits = np.unpackbits(np.frombuffer(blake2b(token.encode(), digest_size=48).digest(), dtype=np.uint8))
    scale = 1.0 if token else 0.05  # A small constant part, so that a text without tokens has a direction too.
    return np.asarray((bits.astype(np.float32) * 2 - 1) * scale, dtype=np.float32)
