"""TextIndex on Qdrant Edge: BM25 over a field of tokens that we make.

Document frequencies and the mean length are those of the whole shard: Edge offers no corpus of its own for a namespace
in text scoring. What a namespace sees of others is thus a small change in its scores, never their content.
"""

from collections.abc import Sequence
from pathlib import Path

from qdrant_edge import EdgeConfig, EdgeSparseVectorParams, Point, TextIndexParams, TextQuery, TokenizerType

from dataplane.adapters.edge.shard import ScopedQuery, Shard, ShardSpec, payload_of, point_id
from dataplane.model import Candidate, Filter, IndexEntry, Scope

BACKEND = "text_index"


class EdgeTextIndex:
    """Full text in an Edge shard. Tokens are matched whole and as they are; they must hold no white space."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    @classmethod
    def open(cls, folder: Path, tokenizer: str) -> "EdgeTextIndex":
        """Opens the index in a folder; see `recreated` for whether its content is gone.

        `tokenizer` names the rule that makes the tokens: a folder filled under another one, or unreadable, is emptied.
        Raises BackendUnavailable.
        """
        tokens = TextIndexParams(
            tokenizer=TokenizerType.Whitespace, lowercase=False, ascii_folding=False, scoring=True, enable_hnsw=False
        )
        # A shard must declare a vector; no point has this one.
        config = EdgeConfig(sparse_vectors={"unused": EdgeSparseVectorParams()})
        spec = ShardSpec(BACKEND, {"tokenizer": tokenizer}, lambda: config, {"tokens": tokens})
        return cls(Shard.open(folder, spec))

    @property
    def recreated(self) -> bool:
        """True when opening found nothing usable: everything must be projected again."""
        return self._shard.recreated

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        await self._shard.upsert([_point(entry) for entry in entries], deadline_s)

    async def delete(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        await self._shard.delete(memory_ids, deadline_s)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        if not tokens:
            return []
        query = TextQuery("tokens", " ".join(tokens))
        return await self._shard.search(ScopedQuery(query, scope, filter, top_k), deadline_s)

    async def versions(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return await self._shard.versions(deadline_s)

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.flush(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.clear(deadline_s)

    async def close(self) -> None:
        """See the port."""
        await self._shard.close()


def _point(entry: IndexEntry) -> Point:
    return Point(point_id(entry.memory_id), {}, {**payload_of(entry), "tokens": " ".join(entry.tokens)})
