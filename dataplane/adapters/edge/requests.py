"""What is asked of an Edge shard, and what its points tell."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from qdrant_edge import EdgeShard, HasIdCondition, IdfParams, Query, QueryRequest, Record, ScrollRequest, SearchParams
from qdrant_edge import Filter as EdgeFilter

from dataplane.adapters.edge.filters import Translation, translate_scope
from dataplane.model import Filter, Held, Scope

SLICE = 16
"""Points made and written between two turns of the event loop: 4 ms of processor time (2026-11)."""
PAGE = 500
"""Ids and versions read between two turns of the event loop: 5 ms of processor time (2026-11)."""

_HELD = ["memory_id", "version", "namespace", "fingerprint"]

PointId = int | uuid.UUID | str


@dataclass(frozen=True, slots=True)
class ScopedQuery:
    """A search within a scope: Edge's scoring query and what may come back.

    `scope_statistics`: document frequencies are those of the scope, not of the shard.
    """

    scoring: Query
    scope: Scope
    filter: Filter
    top_k: int
    scope_statistics: bool = False


def point_id(memory_id: str) -> str:
    """The Edge id of a memory: its hash as a UUID."""
    return str(uuid.UUID(bytes=blake2b(memory_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def request_of(query: ScopedQuery, translation: Translation, asked: int) -> QueryRequest:
    """A search for the `asked` best points; the filter is translated already."""
    scope = translate_scope(query.scope)
    return QueryRequest(
        limit=asked,
        query=query.scoring,
        filter=EdgeFilter(must=[*scope, *translation.conditions]),
        params=SearchParams(idf=IdfParams(EdgeFilter(must=list(scope)))) if query.scope_statistics else None,
        with_payload=["memory_id", "version"] if translation.exact else ["memory_id", "version", "terms"],
    )


def inside(scope: Scope, memory_ids: Sequence[str]) -> EdgeFilter:
    """The points of these memories that lie in the scope."""
    return EdgeFilter(must=[HasIdCondition({point_id(each) for each in memory_ids}), *translate_scope(scope)])


def scroll_rows(inside: EdgeFilter, shard: EdgeShard) -> tuple[list[Record], PointId | None]:
    """The rows of at most PAGE points."""
    return shard.scroll(ScrollRequest(limit=PAGE, filter=inside, with_payload=["memory_id", "row"]))


def scroll(offset: PointId | None, shard: EdgeShard) -> tuple[list[Record], PointId | None]:
    """A page of what points hold, without vectors, and where the next one begins."""
    return shard.scroll(ScrollRequest(offset=offset, limit=PAGE, with_payload=_HELD))


def retrieve(ids: list[str], shard: EdgeShard) -> list[Record]:
    """What these points hold, without vectors."""
    return shard.retrieve(list(ids), with_payload=_HELD, with_vector=False)


def held_in(record: Record) -> tuple[str, Held]:
    """The memory of a point and what is held of it."""
    payload = record.payload or {}
    return payload["memory_id"], Held(payload["version"], payload["namespace"], payload["fingerprint"])


def scroll_whole(offset: PointId | None, shard: EdgeShard) -> tuple[list[Record], PointId | None]:
    """A slice of whole points, and where the next one begins."""
    return shard.scroll(ScrollRequest(offset=offset, limit=SLICE, with_payload=True, with_vector=True))
