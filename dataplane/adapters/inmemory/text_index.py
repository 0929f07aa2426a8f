"""TextIndex in a dict, scanned: the reference for its contract."""

import math
from collections import Counter
from collections.abc import Sequence

from dataplane.logic.filters import matches
from dataplane.model import Candidate, Filter, IndexEntry, Scope

K1 = 1.2
B = 0.75


class InMemoryTextIndex:
    """BM25 (Robertson and Zaragoza 2009) over every entry, k₁ 1.2 and b 0.75, statistics over the whole index."""

    def __init__(self) -> None:
        self._entries: dict[str, IndexEntry] = {}
        self._counts: dict[str, Counter[str]] = {}

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        for entry in entries:
            self._entries[entry.memory_id] = entry
            self._counts[entry.memory_id] = Counter(entry.tokens)

    async def delete(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        for memory_id in memory_ids:
            self._entries.pop(memory_id, None)
            self._counts.pop(memory_id, None)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        weights = {token: self._idf(token) for token in set(tokens)}
        mean_length = sum(map(Counter.total, self._counts.values())) / max(len(self._counts), 1)
        found = [
            Candidate(entry.memory_id, entry.version, self._score(entry.memory_id, weights, mean_length))
            for entry in self._entries.values()
            if scope.covers(entry.namespace, entry.pool)
            and not self._counts[entry.memory_id].keys().isdisjoint(weights)
            and matches(filter, entry.fields)
        ]
        return sorted(found, key=lambda candidate: -candidate.score)[:top_k]

    async def versions(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return {entry.memory_id: entry.version for entry in self._entries.values()}

    async def flush(self, deadline_s: float) -> None:
        """See the port."""

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        self._entries.clear()
        self._counts.clear()

    async def close(self) -> None:
        """See the port."""

    def _idf(self, token: str) -> float:
        holding = sum(1 for counts in self._counts.values() if token in counts)
        return math.log(1 + (len(self._counts) - holding + 0.5) / (holding + 0.5))

    def _score(self, memory_id: str, weights: dict[str, float], mean_length: float) -> float:
        counts = self._counts[memory_id]
        norm = K1 * (1 - B + B * counts.total() / mean_length)
        return sum(weight * counts[token] * (K1 + 1) / (counts[token] + norm) for token, weight in weights.items())
