"""Critical sections by key, within one process; across processes the store's unique keys hold."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from dataplane.errors import BackendUnavailable

BACKEND = "record_store"


class KeyedLocks:
    """A lock a key; keys that nobody holds or waits for take no memory."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold_all(self, keys: Iterable[tuple[str, ...]], deadline_s: float) -> AsyncIterator[None]:
        """Holds the locks of all keys, taken in one order, so that two who want several never wait for each other.

        Raises BackendUnavailable as `hold` does.
        """
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self.hold(key, deadline_s))
            yield

    @asynccontextmanager
    async def hold(self, key: Hashable, deadline_s: float) -> AsyncIterator[None]:
        """Holds the key's lock inside the block.

        Raises BackendUnavailable of the record store, for which those wait who hold it, when it is not free in time.
        """
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            await _acquire(lock, deadline_s)
            try:
                yield
            finally:
                lock.release()
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)


async def _acquire(lock: asyncio.Lock, deadline_s: float) -> None:
    try:
        async with asyncio.timeout_at(deadline_s):
            await lock.acquire()
    except TimeoutError:
        raise BackendUnavailable(BACKEND, "deadline passed behind other writes of the subject") from None
