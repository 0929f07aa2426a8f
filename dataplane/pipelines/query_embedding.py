"""Embeds questions, with a cache in front. Cached by scope, so that no tenant learns what another asked."""

import hashlib

import numpy as np

from dataplane.errors import BackendUnavailable
from dataplane.model import Scope, Vector
from dataplane.ports import Cache, Embedder


class QueryEmbeddings:
    """Embeds a question once per scope and time to live."""

    def __init__(self, cache: Cache):
        self._cache = cache

    async def embed(self, embedder: Embedder, scope: Scope, text: str, ttl_s: float, deadline_s: float) -> Vector:
        """The question's vector; raises BackendUnavailable("embedder")."""
        if ttl_s <= 0:
            return (await embedder.embed_queries([text], deadline_s))[0]
        key = f"query-embedding:{embedder.model}:{hashlib.sha256(text.encode()).hexdigest()}"
        known = await self._known(scope, key, deadline_s)
        if known is not None:
            return known
        vector = (await embedder.embed_queries([text], deadline_s))[0]
        await self._keep(scope, key, vector, ttl_s, deadline_s)
        return vector

    async def _known(self, scope: Scope, key: str, deadline_s: float) -> Vector | None:
        try:
            (value,) = await self._cache.get(scope, [key], deadline_s)
        except BackendUnavailable:
            return None  # slower, not wrong
        return np.frombuffer(value, dtype=np.float32) if value is not None else None

    async def _keep(self, scope: Scope, key: str, vector: Vector, ttl_s: float, deadline_s: float) -> None:
        try:
            await self._cache.put(scope, {key: vector.tobytes()}, ttl_s, deadline_s)
        except BackendUnavailable:
            return  # it will be embedded again
