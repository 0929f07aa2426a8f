"""TextIndex in a dict, scanned: the reference for its contract."""

from collections import Counter
from collections.abc import Sequence

from dataplane.adapters.inmemory import deadline
from dataplane.adapters.inmemory.entries import held_of, newest, rows_of
from dataplane.logic.beacon import with_saved
from dataplane.logic.bm25 import inverse_frequency, term_weights
from dataplane.logic.filters import matches
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope
from dataplane.ports import Examination

BACKEND = "text_index"


class InMemoryTextIndex:
    """BM25 (see `logic.bm25`) over every entry of the scope, with the document frequencies of the scope."""

    def __init__(self) -> None:
        self._entries: dict[str, IndexEntry] = {}
        self._beacons: dict[str, int] = {}
        self._weights: dict[str, dict[str, float]] = {}

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for entry in newest(entries, self._entries).values():
            self._entries[entry.memory_id] = entry
            self._weights[entry.memory_id] = term_weights(Counter(entry.tokens))

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for key in keys:
            self._entries.pop(key.memory_id, None)
            self._weights.pop(key.memory_id, None)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        inside = [entry for entry in self._entries.values() if scope.covers(entry.namespace, entry.pool)]
        telling = {token: self._inverse_frequency(token, inside) for token in tokens}
        found = [
            Candidate(entry.memory_id, entry.version, self._score(entry.memory_id, telling))
            for entry in inside
            if not self._weights[entry.memory_id].keys().isdisjoint(telling) and matches(filter, entry.fields)
        ]
        return sorted(found, key=lambda candidate: -candidate.score)[:top_k]

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return {entry.memory_id: held_of(entry) for entry in self._entries.values()}

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        found = (self._entries.get(key.memory_id) for key in keys)
        return {entry.memory_id: held_of(entry) for entry in found if entry}

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return len(self._entries)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return rows_of(self._entries, scope, memory_ids)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return dict(self._beacons)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._beacons = with_saved(self._beacons, name, value)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return Examination("in memory")

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the port; nothing is on disk."""
        deadline.check(BACKEND, deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._entries.clear()
        self._beacons.clear()
        self._weights.clear()

    async def close(self) -> None:
        """See the port."""

    def _inverse_frequency(self, token: str, inside: list[IndexEntry]) -> float:
        holding = sum(1 for entry in inside if token in self._weights[entry.memory_id])
        return inverse_frequency(len(inside), holding)

    def _score(self, memory_id: str, telling: dict[str, float]) -> float:
        weights = self._weights[memory_id]
        return sum(weights.get(token, 0.0) * weight for token, weight in telling.items())
