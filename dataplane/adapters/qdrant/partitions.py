"""Which namespace subtrees have a collection of their own, known without asking before every search.

A search must look into a dedicated collection as soon as something settled lies in it, whoever put it there. Each
process lists the collections anew when its list is `refresh_s` old. A writer in turn keeps its first write to a
dedicated collection back until it has known that collection for `refresh_s`: by then every list in use names it.
"""

import asyncio
from collections.abc import Iterable

from dataplane.adapters.qdrant.calls import BACKEND, Connection
from dataplane.adapters.qdrant.collections import Collections
from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.errors import BackendUnavailable
from memplane.policy.effective import lineage


class Partitions:
    """The dedicated collections of one embedding model, as a list that is at most `refresh_s` old."""

    def __init__(
        self, connection: Connection, names: CollectionNames, collections: Collections, refresh_s: float
    ) -> None:
        self._connection = connection
        self._names = names
        self._collections = collections
        self._refresh_s = refresh_s
        self._known_since_s: dict[str, float] = {}
        self._made: set[str] = set()
        self._listed_s = float("-inf")
        self._listing = asyncio.Lock()

    async def covering(self, namespaces: Iterable[str], deadline_s: float) -> list[str]:
        """The common collection, and the dedicated ones that may hold memories of these namespaces."""
        if self._now_s() - self._listed_s >= self._refresh_s:
            await self._list(self._refresh_s, deadline_s)
        if not self._known_since_s:
            return [self._names.common]
        wanted = {self._names.of(above) for namespace in namespaces for above in lineage(namespace)}
        return [self._names.common, *sorted(wanted & self._known_since_s.keys())]

    async def all(self, deadline_s: float) -> list[str]:
        """Every collection there is now, the common one first."""
        await self._list(0.0, deadline_s)
        return [self._names.common, *sorted(self._known_since_s)]

    async def ready(self, partition: str, deadline_s: float) -> str:
        """The collection that takes writes of a partition; a dedicated one is made when it is absent or half made.

        Raises BackendUnavailable when a new one may not be written to before the deadline.
        """
        name = self._names.of(partition)
        if not partition:
            return name
        if name not in self._made:
            await self._collections.make(partition, deadline_s)
            self._made.add(name)
        wait_s = self._known_since_s.setdefault(name, self._now_s()) + self._refresh_s - self._now_s()
        if self._now_s() + wait_s > deadline_s:
            raise BackendUnavailable(BACKEND, f"a new dedicated collection takes writes in {wait_s:.1f} s")
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        return name

    def forget(self, name: str) -> None:
        """Takes a collection that turned out to be gone from the list."""
        self._known_since_s.pop(name, None)
        self._made.discard(name)

    async def _list(self, age_s: float, deadline_s: float) -> None:
        """Lists the collections unless that was done less than `age_s` ago."""
        async with self._listing:
            asked_s = self._now_s()
            if asked_s - self._listed_s < age_s:
                return
            found = await self._connection.call(lambda client: client.get_collections(), deadline_s)
            names = [each.name for each in found.collections if self._names.is_dedicated(each.name)]
            self._known_since_s = {name: self._known_since_s.get(name, self._now_s()) for name in names}
            self._listed_s = asked_s

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
