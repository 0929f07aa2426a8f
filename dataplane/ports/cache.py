"""The port of the cache."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from dataplane.model import Scope
from dataplane.ports.backend import Backend


class Cache(Backend, Protocol):
    """Values that may be lost at any time: losing them loses time only. Keys of different scopes never meet.

    Tombstones are the exception in kind: see `bury`.
    """

    async def get(self, scope: Scope, keys: Sequence[str], deadline_s: float) -> list[bytes | None]:
        """The values, index-aligned; None when absent or expired."""
        ...

    async def put(self, scope: Scope, values: Mapping[str, bytes], ttl_s: float, deadline_s: float) -> None:
        """Keeps values for at most `ttl_s` (0: not at all); the oldest go when it is full."""
        ...

    async def stamp(self, scope: Scope, deadline_s: float) -> str:
        """A text that changes, in every process, whenever a namespace of the scope (own or shared) is dropped.

        Whoever caches what depends on memories reads the stamp first, then the memories, and seals by the stamp what it
        keeps (`dataplane.sealing`): then nothing read before a drop can be read after it.
        """
        ...

    async def drop(self, namespaces: Sequence[str], deadline_s: float) -> None:
        """Changes the stamp of every scope that touches one of the namespaces."""
        ...

    async def bury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """Keeps tombstones of forgotten memories for every process, for 30 days."""
        ...

    async def unbury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """Takes tombstones away, for memories that stand again."""
        ...

    async def buried(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """Those of the ids that have a tombstone here."""
        ...

    async def continuity(self, deadline_s: float) -> str:
        """A text that stays the same as long as the cache has surely lost no tombstone.

        It changes when the cache was flushed, restarted, evicted its tombstones, or when a replica took over.
        """
        ...

    async def vouch(self, continuity: str, deadline_s: float) -> None:
        """Notes that no tombstone is missing, if `continuity` still holds; else nothing happens.

        Who vouches has asked for the continuity first, then buried whatever the indexes may still hold.
        """
        ...

    async def is_vouched(self, deadline_s: float) -> bool:
        """Whether somebody vouched and the continuity of then still holds: then `buried` may be relied on."""
        ...
