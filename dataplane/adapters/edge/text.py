"""TextIndex on Qdrant Edge: BM25 as a product of sparse vectors over tokens that we make.

A memory's vector holds the term-frequency part of BM25 for each of its tokens, a query's ones; Edge multiplies with the
inverse document frequency *within the scope of the search*, so that neither scores nor their changes tell one
namespace what another holds. (Edge's own text index ranks by frequencies of the whole shard: recall@10 on MemDaily zh
.716 against .737, on LoCoMo .673 against .687, 2026-11, mixed with vectors.) Dimensions are 32-bit hashes of tokens:
among 100,000 distinct tokens about one pair meets in the same dimension.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from qdrant_edge import EdgeConfig, EdgeSparseVectorParams, Modifier, Point, Query, SparseVector

from dataplane.adapters.edge.engine import ShardSpec
from dataplane.adapters.edge.requests import ScopedQuery, point_id
from dataplane.adapters.edge.shard import Shard
from dataplane.adapters.payload_filters import payload_of
from dataplane.logic.bm25 import term_weights
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope
from dataplane.ports import Examination

BACKEND = "text_index"
_VECTOR = "tokens"


class EdgeTextIndex:
    """Full text in an Edge shard. Tokens are matched whole and as they are."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    @classmethod
    def open(cls, folder: Path, tokenizer: str) -> "EdgeTextIndex":
        """Opens the index in a folder; see `recreated` for whether its content is gone.

        `tokenizer` names the rule that makes the tokens: a folder filled under another one, or unreadable, is emptied.
        Raises BackendUnavailable.
        """
        config = EdgeConfig(sparse_vectors={_VECTOR: EdgeSparseVectorParams(modifier=Modifier.Idf)})
        spec = ShardSpec(BACKEND, {"tokenizer": tokenizer}, config)
        return cls(Shard.open(folder, spec))

    @property
    def recreated(self) -> bool:
        """True when opening found nothing usable: everything must be projected again."""
        return self._shard.recreated

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        await self._shard.upsert((_point(entry) for entry in entries), deadline_s)

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        await self._shard.delete(keys, deadline_s)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        if not tokens:
            return []
        query = Query.Nearest(_sparse(dict.fromkeys(tokens, 1.0)), using=_VECTOR)
        return await self._shard.search(ScopedQuery(query, scope, filter, top_k, scope_statistics=True), deadline_s)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._shard.versions(deadline_s)

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._shard.held(keys, deadline_s)

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        return await self._shard.count(deadline_s)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        return await self._shard.rows(scope, memory_ids, deadline_s)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return await self._shard.beacons(deadline_s)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port. Raises BackendUnavailable when the folder was gone; it is there again, empty."""
        await self._shard.save_beacon(name, value, deadline_s)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        return await self._shard.examine(deadline_s)

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.flush(deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.purge(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.clear(deadline_s)

    async def close(self) -> None:
        """See the port."""
        await self._shard.close()


def _point(entry: IndexEntry) -> Point:
    vector: dict[str, list[float] | SparseVector | list[list[float]]] = {}
    if entry.tokens:
        vector[_VECTOR] = _sparse(term_weights(Counter(entry.tokens)))
    return Point(point_id(entry.memory_id), vector, payload_of(entry))


def _sparse(weights: Mapping[str, float]) -> SparseVector:
    values: dict[int, float] = {}
    for token, weight in weights.items():
        dimension = int.from_bytes(blake2b(token.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")
        values[dimension] = max(weight, values.get(dimension, 0.0))
    return SparseVector(list(values), list(values.values()))
