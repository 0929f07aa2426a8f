"""Critical sections by key, within one process; across processes the store's unique keys hold."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager


class KeyedLocks:
    """A lock a key; keys that nobody holds or waits for take no memory."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold_all(self, keys: Iterable[tuple[str, ...]]) -> AsyncIterator[None]:
        """Holds the locks of all keys, taken in one order, so that two who want several never wait for each other."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self.hold(key))
            yield

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[None]:
        """Holds the key's lock inside the block."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)
