"""VectorIndex on a Qdrant server.

The collection of an embedding model holds all namespaces, told apart by the tenant index on `namespace`; a namespace
subtree that the policy isolates has a collection beside it. A write is done when the server has applied it. Every
search carries the scope's condition. Dedicated collections are searched while they exist, whatever the policy says
now, so that a change of policy hides nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from typing import TypeVar

from qdrant_client import models

from dataplane.adapters.payload_filters import rows_in
from dataplane.adapters.qdrant import beacons
from dataplane.adapters.qdrant.calls import BACKEND, AccessRefused, CollectionMissing, Connection, connect
from dataplane.adapters.qdrant.collections import Collections, version_problem
from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.partitions import Partitions
from dataplane.adapters.qdrant.points import best, check_vector, held_in, latest, point_id
from dataplane.adapters.qdrant.store import PointStore, ScopedSearch
from dataplane.errors import BackendUnavailable, EntriesRefused, Misconfigured
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope, Vector
from dataplane.ports.backend import Examination, Problem

Found = TypeVar("Found")
Written = TypeVar("Written")

EVERY_POINT = models.FilterSelector(
    filter=models.Filter(must_not=[models.FieldCondition(key="memory_id", match=models.MatchValue(value=""))])
)


class QdrantVectorIndex:
    """Nearest neighbours in the collections of one embedding model.

    Raises ValueError for an embedding that is not a vector of this index. `purge` has nothing to ask for: Qdrant's
    optimiser rewrites a segment once a fifth of it is deleted; until then deleted vectors and rows lie in its files,
    out of every answer.
    """

    def __init__(self, connection: Connection, options: QdrantOptions, names: CollectionNames) -> None:
        self._connection = connection
        self._options = options
        self._names = names
        self._collections = Collections(connection, options, names)
        self._store = PointStore(connection, options.batch_size, quantised=options.quantisation != "none")
        self._partitions = Partitions(connection, names, self._collections, options.partition_refresh_s)
        self._was_active = False

    @classmethod
    async def open(cls, options: QdrantOptions, model: str, dimension: int) -> "QdrantVectorIndex":
        """Connects, and makes the model's collection if it is absent.

        Raises BackendUnavailable when nothing answers, and Misconfigured for an old server, a wrong API key, or a
        collection that cannot hold these embeddings.
        """
        return await cls.over(connect(options), options, model, dimension)

    @classmethod
    async def over(
        cls, connection: Connection, options: QdrantOptions, model: str, dimension: int
    ) -> "QdrantVectorIndex":
        """As `open`, over a connection that is there; it is closed when this fails."""
        index = cls(connection, options, CollectionNames(options.prefix, model, dimension))
        try:
            await index._prepare(asyncio.get_running_loop().time() + 10 * options.timeout_s)
        except AccessRefused as error:
            await connection.close()
            raise Misconfigured(BACKEND, f"{options.url} {error.detail}; set vector_index.api_key") from error
        except BackendUnavailable as error:
            await connection.close()
            text = f"{options.url} {error.detail}; is it the gRPC port (6334), not that of REST (6333)?"
            raise BackendUnavailable(BACKEND, text) from error
        except BaseException:
            await connection.close()
            raise
        return index

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        refused: list[str] = []
        kept = entries if self._options.rows else [replace(entry, row=b"") for entry in entries]
        for partition, group in latest(kept, self._names.dimension).items():
            refused += await self._upsert(partition, group, deadline_s)
        if refused:
            raise EntriesRefused(BACKEND, dict.fromkeys(refused, "Qdrant calls the point invalid"))

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port. The points are read back: BackendUnavailable when one is still there."""
        ids = [point_id(key.memory_id) for key in keys]
        if not ids:
            return
        for collection in await self._partitions.all(deadline_s):
            await self._there(collection, partial(self._delete, collection, ids, deadline_s), deadline_s)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        check_vector(vector, self._names.dimension, "the vector asked for")
        collections = await self._covering(scope, deadline_s)
        asked = ScopedSearch(scope, vector.tolist(), filter, top_k, max(ef, top_k))
        if len(collections) == 1:
            return await self._store.search(collections[0], asked, deadline_s)
        searching = {each: partial(self._store.search, each, asked, deadline_s) for each in collections}
        found = await asyncio.gather(*starmap(self._found, searching.items()))
        return best(chain.from_iterable(found), top_k)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        held: dict[str, Held] = {}
        for collection in await self._partitions.all(deadline_s):
            async for points in self._store.read_all(collection, deadline_s):
                held_in(points, held)
        return held

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        held: dict[str, Held] = {}
        ids = [point_id(key.memory_id) for key in keys]
        for collection in await self._partitions.all(deadline_s):
            held_in(await self._store.read(collection, ids, deadline_s), held)
        return held

    async def count(self, deadline_s: float) -> int:
        """See the port. While a memory moves between collections it counts twice."""
        collections = await self._partitions.all(deadline_s)
        return sum([await self._store.count(collection, deadline_s) for collection in collections])

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        ids = [point_id(memory_id) for memory_id in memory_ids]
        collections = await self._covering(scope, deadline_s)
        reading = {each: partial(self._store.rows, each, scope, ids, deadline_s) for each in collections}
        found = await asyncio.gather(*starmap(self._found, reading.items()))
        newest_last = sorted(chain.from_iterable(found), key=lambda payload: int(payload["version"]))
        return rows_in(newest_last)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port; none while the common collection is gone."""
        return await beacons.read(self._connection, await self._partitions.all(deadline_s), deadline_s)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port. Raises BackendUnavailable when the common collection was gone; it is there again, empty."""
        collections = await self._partitions.all(deadline_s)
        point = beacons.beacon(name, value, self._names.dimension, collections[1:])
        try:
            await beacons.save(self._connection, collections, point, deadline_s)
        except CollectionMissing as error:
            await self._make_again(deadline_s)
            raise BackendUnavailable(BACKEND, "a collection was gone and was made anew, empty") from error

    async def flush(self, deadline_s: float) -> None:
        """See the port: a write is applied and in Qdrant's log when `upsert` returns."""
        self._connection.check(deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the class."""
        self._connection.check(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port. Dedicated collections go; the common one is emptied, since the alias may name it."""
        common, *dedicated = await self._partitions.all(deadline_s)
        for collection in dedicated:
            await self._collections.drop(collection, deadline_s)
            self._partitions.forget(collection)
        emptying = partial(self._store.remove, common, EVERY_POINT, deadline_s)
        await self._there(common, emptying, deadline_s)

    async def active_model(self, deadline_s: float) -> str:
        """See the port."""
        active = await self._active_collection(deadline_s)
        return str((await self._collections.metadata(active, deadline_s)).get("model", "")) if active else ""

    async def activate(self, deadline_s: float) -> None:
        """See the port."""
        active = await self._active_collection(deadline_s)
        if active == self._names.common:
            return
        await self._name(active, deadline_s)

    async def _name(self, active: str, deadline_s: float) -> None:
        """Puts the alias before our common collection in place of the one that it names."""
        alias, actions = self._names.alias, list[models.AliasOperations]()
        if active:
            actions.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        create = models.CreateAlias(alias_name=alias, collection_name=self._names.common)
        actions.append(models.CreateAliasOperation(create_alias=create))
        await self._connection.call(lambda client: client.update_collection_aliases(actions), deadline_s)
        self._was_active = True

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        version = (await self._connection.call(lambda client: client.info(), deadline_s)).version
        problems = await self._collections.problems(await self._active_collection(deadline_s), deadline_s)
        old = version_problem(version)
        if old is not None:
            problems.insert(0, Problem("SERVER_TOO_OLD", old))
        if self._options.api_key and not self._options.tls:
            problems.append(Problem("KEY_IN_CLEAR", "the API key goes over an unencrypted connection; use https"))
        return Examination(f"Qdrant {version}", tuple(problems))

    async def close(self) -> None:
        """See the port."""
        await self._connection.close()

    async def _prepare(self, deadline_s: float) -> None:
        version = (await self._connection.call(lambda client: client.info(), deadline_s)).version
        problem = version_problem(version)
        if problem is not None:
            raise Misconfigured(BACKEND, problem)
        await self._collections.make("", deadline_s)
        found = await self._connection.call(lambda client: client.get_collections(), deadline_s)
        if self._names.alias in {each.name for each in found.collections}:
            text = f"a collection is named {self._names.alias}, as our alias would be; set another vector_index.prefix"
            raise Misconfigured(BACKEND, text)
        await self._partitions.all(deadline_s)

    async def _upsert(self, partition: str, entries: Sequence[IndexEntry], deadline_s: float) -> list[str]:
        """Writes to one partition, then removes from the others what lay there before; so it is found all along."""
        collection = await self._partitions.ready(partition, deadline_s)
        refused = await self._there(collection, partial(self._store.write, collection, entries, deadline_s), deadline_s)
        namespaces = {entry.namespace for entry in entries}
        for other in await self._partitions.covering(namespaces, deadline_s):
            if other != collection:
                await self._there(other, partial(self._store.remove_older, other, entries, deadline_s), deadline_s)
        return refused

    async def _delete(self, collection: str, ids: Sequence[str], deadline_s: float) -> None:
        await self._store.remove(collection, models.PointIdsList(points=list(ids)), deadline_s)
        left = await self._store.read(collection, ids, deadline_s)
        if left:
            raise BackendUnavailable(BACKEND, f"{len(left)} deleted points are still in {collection}")

    async def _covering(self, scope: Scope, deadline_s: float) -> list[str]:
        """The collections that may hold memories of the scope."""
        if scope.system:
            return await self._partitions.all(deadline_s)
        return await self._partitions.covering((*scope.namespaces, *scope.shared), deadline_s)

    async def _found(self, collection: str, ask: Callable[[], Awaitable[list[Found]]]) -> list[Found]:
        """What one of several collections answers; a dedicated one that is gone has nothing more."""
        try:
            return await ask()
        except CollectionMissing:
            if not self._names.is_dedicated(collection):
                raise
            self._partitions.forget(collection)
            return []

    async def _there(self, collection: str, write: Callable[[], Awaitable[Written]], deadline_s: float) -> Written:
        """A write, also when somebody removed the common collection: it is made anew, and the write comes again."""
        try:
            return await write()
        except CollectionMissing:
            if self._names.is_dedicated(collection):
                self._partitions.forget(collection)  # the next write makes it
                raise
            await self._make_again(deadline_s)
            return await write()

    async def _make_again(self, deadline_s: float) -> None:
        """Makes the common collection, and names it by the alias if it was so when we looked last."""
        await self._collections.make("", deadline_s)
        if self._was_active and not await self._active_collection(deadline_s):
            await self._name("", deadline_s)

    async def _active_collection(self, deadline_s: float) -> str:
        aliases = (await self._connection.call(lambda client: client.get_aliases(), deadline_s)).aliases
        active = next((each.collection_name for each in aliases if each.alias_name == self._names.alias), "")
        if active:
            self._was_active = active == self._names.common
        return active
