"""The embedded cache: bounded, least recently used out first, in this process alone."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dataplane.model import Scope


@dataclass(frozen=True, slots=True)
class _Entry:
    value: bytes
    expire_s: float


class InProcessCache:
    """A `ports.Cache` of at most `size_bytes` of keys and values; the least recently read or written go first.

    `monotonic_s` is a clock in seconds that never goes back. A value larger than the whole cache is not kept. It never
    waits, so deadlines do not matter to it.
    """

    def __init__(self, size_bytes: int, monotonic_s: Callable[[], float]) -> None:
        self._size_bytes = size_bytes
        self._monotonic_s = monotonic_s
        self._used_bytes = 0
        self._entries: OrderedDict[tuple[Scope, str], _Entry] = OrderedDict()
        self._keys: dict[str, set[tuple[Scope, str]]] = {}

    async def get(self, scope: Scope, key: str, deadline_s: float) -> bytes | None:
        """See the port."""
        entry = self._entries.get((scope, key))
        if entry is None:
            return None
        if entry.expire_s <= self._monotonic_s():
            self._drop((scope, key))
            return None
        self._entries.move_to_end((scope, key))
        return entry.value

    async def put(self, scope: Scope, key: str, value: bytes, ttl_s: float, deadline_s: float) -> None:
        """See the port."""
        place = (scope, key)
        self._drop(place)
        if ttl_s <= 0 or _size_of(key, value) > self._size_bytes:
            return
        self._entries[place] = _Entry(value, self._monotonic_s() + ttl_s)
        self._used_bytes += _size_of(key, value)
        for namespace in _touched(scope):
            self._keys.setdefault(namespace, set()).add(place)
        while self._used_bytes > self._size_bytes:
            self._drop(next(iter(self._entries)))

    async def drop_namespace(self, namespace: str, deadline_s: float) -> None:
        """See the port. A value of the system's scope touches every namespace."""
        for place in self._keys.get(namespace, set()) | self._keys.get("", set()):
            self._drop(place)

    def _drop(self, place: tuple[Scope, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is None:
            return
        self._used_bytes -= _size_of(place[1], entry.value)
        for namespace in _touched(place[0]):
            places = self._keys[namespace]
            places.discard(place)
            if not places:
                del self._keys[namespace]


def _size_of(key: str, value: bytes) -> int:
    return len(key) + len(value)


def _touched(scope: Scope) -> set[str]:
    """The namespaces of a scope; "" stands for every one."""
    return {""} if scope.system else {*scope.namespaces, *scope.shared}
