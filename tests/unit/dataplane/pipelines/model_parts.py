"""Embedders that differ in name and dimension, with vectors of their own for each text."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.model import Vector


class NamedEmbedder(HashEmbedder):
    """HashEmbedder's vectors turned round by a matrix that its name draws, cut to `dimension`."""

    def __init__(self, model: str, dimension: int = 8):
        seed = int.from_bytes(blake2b(model.encode(), digest_size=8).digest(), "big")
        self._model = model
        self._dimension = dimension
        self._turn = np.random.default_rng(seed).standard_normal((384, dimension)).astype(np.float32)

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        return [self._turned(vector) for vector in await super().embed_queries(texts, deadline_s)]

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        return [self._turned(vector) for vector in await super().embed_passages(texts, deadline_s)]

    def _turned(self, vector: Vector) -> Vector:
        turned = vector @ self._turn
        return np.asarray(turned / np.linalg.norm(turned), dtype=np.float32)
