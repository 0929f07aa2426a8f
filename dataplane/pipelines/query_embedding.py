"""Embeds questions, with a cache in front. Cached by scope, so that no tenant learns what another asked."""

import asyncio
import hashlib

import numpy as np

from dataplane.errors import BackendUnavailable
from dataplane.model import Scope, Vector
from dataplane.ports import Cache, Embedder

PATIENCE_S = 0.1
"""How long the cache may take: a slower one must not cost a search its time limit once more. Unmeasured."""


class QueryEmbeddings:
    """Embeds a question once per scope and time to live."""

    def __init__(self, cache: Cache):
        self._cache = cache

    async def embed(self, embedder: Embedder, scope: Scope, text: str, ttl_s: float, deadline_s: float) -> Vector:
        """The question's vector; raises BackendUnavailable("embedder")."""
        if ttl_s <= 0:
            return (await embedder.embed_queries([text], deadline_s))[0]
        key = f"query-embedding:{embedder.model}:{hashlib.sha256(text.encode()).hexdigest()}"
        try:
            (known,) = await self._cache.get(scope, [key], _soon(deadline_s))
        except BackendUnavailable:  # slower, not wrong
            return (await embedder.embed_queries([text], deadline_s))[0]
        if known is not None:
            return np.frombuffer(known, dtype=np.float32)
        vector = (await embedder.embed_queries([text], deadline_s))[0]
        await self._keep(scope, key, vector, ttl_s, deadline_s)
        return vector

    async def _keep(self, scope: Scope, key: str, vector: Vector, ttl_s: float, deadline_s: float) -> None:
        try:
            await self._cache.put(scope, {key: vector.tobytes()}, ttl_s, _soon(deadline_s))
        except BackendUnavailable:
            return  # it will be embedded again


def _soon(deadline_s: float) -> float:
    return min(deadline_s, asyncio.get_running_loop().time() + PATIENCE_S)
