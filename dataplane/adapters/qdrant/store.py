"""What is asked of one collection: write, remove, read, search."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from qdrant_client import models
from qdrant_client.conversions.common_types import PointId

from dataplane.adapters.payload_filters import passes
from dataplane.adapters.qdrant.calls import Connection, RequestRefused
from dataplane.adapters.qdrant.filters import MEMORIES, among, not_newer, scoped, translate
from dataplane.adapters.qdrant.points import candidate, point_id, point_of, terms
from dataplane.model import Candidate, Filter, IndexEntry, Scope

PAGE = 1000
"""Points read or removed in one call where no vectors come with them."""
KEPT = ["memory_id", "version", "namespace", "fingerprint"]
"""The payload that tells what a point holds."""
OVERSAMPLING = 2.0
"""With quantisation, so many times `top_k` are scored again with full vectors. Unmeasured."""

ACORN = models.AcornSearchParams(enable=True)
"""Lets a search through the graph step over points that the filter rules out, where it rules out 60 % and more. Without
it a namespace with a fifth of 100,000 vectors had a recall@10 of 0.41, with it 0.99 (Edge, ef 64, 2026-11): Qdrant adds
links of its own to small namespaces alone."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScopedSearch:
    """A search within a scope; `ef` at least `top_k`."""

    scope: Scope
    vector: list[float]
    filter: Filter
    top_k: int
    ef: int


class _Query(TypedDict):
    query: list[float]
    query_filter: models.Filter
    search_params: models.SearchParams
    with_payload: list[str]


class PointStore:
    """Calls on collections by name. Raises what `Connection.call` does."""

    def __init__(self, connection: Connection, batch_size: int, quantised: bool) -> None:
        self._call = connection.call
        self._batch_size = batch_size
        self._rescoring = (
            models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING) if quantised else None
        )

    async def write(self, collection: str, entries: Sequence[IndexEntry], deadline_s: float) -> list[str]:
        """Writes entries where nothing newer lies; returns the memory ids of those the server calls invalid."""
        refused: list[str] = []
        for batch in pages(entries, self._batch_size):
            refused += await self._write(collection, batch, deadline_s)
        return refused

    async def remove(self, collection: str, points: models.PointsSelector, deadline_s: float) -> None:
        """Removes points; they are gone when it returns."""
        await self._call(lambda client: client.delete(collection, points), deadline_s)

    async def remove_older(self, collection: str, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """Removes what a collection holds of these memories at these versions or older ones."""
        for batch in pages(entries, self._batch_size):
            await self.remove(collection, models.FilterSelector(filter=_not_newer(batch)), deadline_s)

    async def read(self, collection: str, ids: Sequence[str], deadline_s: float) -> list[models.Record]:
        """The points that are there, with the payload KEPT."""
        found: list[models.Record] = []
        for some in pages(ids, PAGE):
            found += await self._read(collection, some, deadline_s)
        return found

    async def read_all(self, collection: str, deadline_s: float) -> AsyncIterator[list[models.Record]]:
        """The point of every memory, page by page, with the payload KEPT."""
        offset: PointId | None = None
        while True:
            points, offset = await self._page(collection, offset, deadline_s)
            yield points
            if offset is None:
                return

    async def count(self, collection: str, deadline_s: float) -> int:
        """How many memories there are, exactly."""
        counted = await self._call(lambda client: client.count(collection, MEMORIES, exact=True), deadline_s)
        return counted.count

    async def rows(self, collection: str, scope: Scope, ids: Sequence[str], deadline_s: float) -> list[dict[str, Any]]:
        """Id, version and packed row of those of the points that lie in the scope."""
        found: list[dict[str, Any]] = []
        for some in pages(ids, PAGE):
            found += await self._rows(collection, among(scope, some), deadline_s)
        return found

    async def search(self, collection: str, asked: ScopedSearch, deadline_s: float) -> list[Candidate]:
        """The best points of a scope, best first.

        Where conditions cannot say the filter exactly, more are fetched and checked until `top_k` pass or no more come.
        """
        translation = translate(asked.filter)
        query = _Query(
            query=asked.vector,
            query_filter=scoped(asked.scope, translation.conditions),
            search_params=models.SearchParams(hnsw_ef=asked.ef, quantization=self._rescoring, acorn=ACORN),
            with_payload=["memory_id", "version"] if translation.exact else ["memory_id", "version", "terms"],
        )
        limit = asked.top_k if translation.exact else 4 * asked.top_k
        while True:
            found = await self._query(collection, query, limit, deadline_s)
            kept = found if translation.exact else [hit for hit in found if passes(asked.filter, terms(hit))]
            if len(kept) >= asked.top_k or len(found) < limit:
                return [candidate(hit) for hit in kept[: asked.top_k]]
            limit *= 4

    async def _query(self, collection: str, query: "_Query", limit: int, deadline_s: float) -> list[models.ScoredPoint]:
        response = await self._call(lambda client: client.query_points(collection, limit=limit, **query), deadline_s)
        return response.points

    async def _read(self, collection: str, ids: Sequence[str], deadline_s: float) -> list[models.Record]:
        return await self._call(lambda client: client.retrieve(collection, ids, with_payload=KEPT), deadline_s)

    async def _page(
        self, collection: str, offset: PointId | None, deadline_s: float
    ) -> tuple[list[models.Record], PointId | None]:
        return await self._call(
            lambda client: client.scroll(collection, MEMORIES, limit=PAGE, offset=offset, with_payload=KEPT), deadline_s
        )

    async def _rows(self, collection: str, inside: models.Filter, deadline_s: float) -> list[dict[str, Any]]:
        wanted = ["memory_id", "version", "row"]
        points, _ = await self._call(
            lambda client: client.scroll(collection, inside, limit=PAGE, with_payload=wanted), deadline_s
        )
        return [point.payload for point in points if point.payload]

    async def _write(self, collection: str, entries: Sequence[IndexEntry], deadline_s: float) -> list[str]:
        """A batch that is called invalid is halved until only what is wrong with it is left."""
        points = [point_of(entry) for entry in entries]
        guard = _not_newer(entries)
        try:
            await self._call(
                lambda client: client.upsert(collection, points, wait=True, update_filter=guard), deadline_s
            )
        except RequestRefused:
            if len(entries) == 1:
                return [entries[0].memory_id]
            middle = len(entries) // 2
            first = await self._write(collection, entries[:middle], deadline_s)
            return first + await self._write(collection, entries[middle:], deadline_s)
        return []


def pages(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in order, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _not_newer(entries: Sequence[IndexEntry]) -> models.Filter:
    return not_newer({point_id(entry.memory_id): entry.version for entry in entries})
