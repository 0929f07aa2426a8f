"""Markers of the in-memory record store."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from dataplane.adapters.inmemory.record_tables import Tables


class InMemoryMarkers(ABC):
    """What RecordStore says of markers, over the tables of the store."""

    _tables: Tables

    @abstractmethod
    def _check(self, deadline_s: float) -> None:
        """Raises BackendUnavailable when the store does not answer in time."""

    async def marker(self, name: str, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        return self._tables.markers.get(name, 0)

    async def save_marker(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        self._tables.markers[name] = value

    async def raise_marker(self, name: str, value: int, unit: int, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        if name not in self._tables.markers or value // unit > self._tables.markers[name] // unit:
            self._tables.markers[name] = value
        return self._tables.markers[name]

    async def stamp_marker(self, name: str, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        self._tables.markers[name] = self._tables.time_us

    async def stale_markers(self, prefix: str, seconds: float, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        self._check(deadline_s)
        since_us = self._tables.time_us - int(seconds * 1e6)
        stale = sorted(name for name, at in self._tables.markers.items() if name.startswith(prefix) and at <= since_us)
        return stale[:page_size]

    async def drop_markers(self, names: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        for name in names:
            self._tables.markers.pop(name, None)
