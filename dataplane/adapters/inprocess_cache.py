"""The embedded cache: bounded, least recently used out first, in this process alone."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dataplane.model import Scope
from dataplane.ports import Examination

MAX_EPOCHS = 100_000
"""Namespaces whose drops are told apart; beyond it a drop may change the stamps of others, too. Unmeasured."""

MAX_TOMBSTONES = 200_000
"""Tombstones kept; beyond it the oldest go, which ends their continuity. Unmeasured."""

TOMBSTONE_TTL_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class _Entry:
    value: bytes
    expire_s: float


class InProcessCache:
    """A `ports.Cache` of at most `size_bytes` of keys and values; the least recently read or written go first.

    `monotonic_s` is a clock in seconds that never goes back. A value larger than the whole cache is not kept. It never
    waits, so deadlines do not matter to it. Values of old stamps are not looked for: they age out.
    """

    def __init__(self, size_bytes: int, monotonic_s: Callable[[], float]) -> None:
        self._size_bytes = size_bytes
        self._monotonic_s = monotonic_s
        self._used_bytes = 0
        self._entries: OrderedDict[tuple[Scope, str], _Entry] = OrderedDict()
        self._epochs = _Epochs(MAX_EPOCHS)
        self._tombstones: OrderedDict[str, float] = OrderedDict()
        self._lives = 1
        self._vouched = ""

    async def get(self, scope: Scope, keys: Sequence[str], deadline_s: float) -> list[bytes | None]:
        """See the port."""
        return [self._get((scope, key)) for key in keys]

    async def put(self, scope: Scope, values: Mapping[str, bytes], ttl_s: float, deadline_s: float) -> None:
        """See the port."""
        for key, value in values.items():
            self._put((scope, key), value, ttl_s)

    async def stamp(self, scope: Scope, deadline_s: float) -> str:
        """See the port."""
        names = [""] if scope.system else sorted({*scope.namespaces, *scope.shared})
        return ".".join(str(self._epochs.of(name)) for name in names)

    async def drop(self, namespaces: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        if namespaces:
            self._epochs.renew({"", *namespaces})

    async def bury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        now_s = self._monotonic_s()
        for memory_id in memory_ids:
            self._tombstones.pop(memory_id, None)
            self._tombstones[memory_id] = now_s + TOMBSTONE_TTL_S
        while self._tombstones and self._first_expiry_s() <= now_s:
            self._tombstones.popitem(last=False)
        while len(self._tombstones) > MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)
            self._lives += 1

    async def unbury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        for memory_id in memory_ids:
            self._tombstones.pop(memory_id, None)

    async def buried(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """See the port."""
        return self._tombstones.keys() & set(memory_ids)

    async def continuity(self, deadline_s: float) -> str:
        """See the port."""
        return str(self._lives)

    async def vouch(self, continuity: str, deadline_s: float) -> None:
        """See the port."""
        self._vouched = continuity

    async def is_vouched(self, deadline_s: float) -> bool:
        """See the port."""
        return self._vouched == str(self._lives)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        return Examination("in process")

    async def close(self) -> None:
        """See the port."""
        self._entries.clear()
        self._used_bytes = 0

    def _first_expiry_s(self) -> float:
        return next(iter(self._tombstones.values()))

    def _get(self, place: tuple[Scope, str]) -> bytes | None:
        entry = self._entries.get(place)
        if entry is None:
            return None
        if entry.expire_s <= self._monotonic_s():
            self._remove(place)
            return None
        self._entries.move_to_end(place)
        return entry.value

    def _put(self, place: tuple[Scope, str], value: bytes, ttl_s: float) -> None:
        self._remove(place)
        if ttl_s <= 0 or _size_of(place, value) > self._size_bytes:
            return
        self._entries[place] = _Entry(value, self._monotonic_s() + ttl_s)
        self._used_bytes += _size_of(place, value)
        while self._used_bytes > self._size_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, place: tuple[Scope, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self._used_bytes -= _size_of(place, entry.value)


class _Epochs:
    """A number for each name that grows with each renewal and never comes again, also when a name was let go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._of_others = 0
        self._known: OrderedDict[str, int] = OrderedDict()

    def of(self, name: str) -> int:
        return self._known.get(name, self._of_others)

    def renew(self, names: Iterable[str]) -> None:
        self._count += 1
        for name in names:
            self._known.pop(name, None)
            self._known[name] = self._count
        while len(self._known) > self._most:
            self._of_others = self._known.popitem(last=False)[1]


def _size_of(place: tuple[Scope, str], value: bytes) -> int:
    return len(place[1]) + len(value)
