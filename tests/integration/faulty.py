"""Ports that fail or hang as a test tells them to, and a plane over them."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from tests.deadline import eventually_async
from tests.integration.harness import CACHE_BYTES, KEEP_ALL, Plane, running_plane

NEVER_S = 1e12
BACKENDS = {
    "records": "record_store",
    "vectors": "vector_index",
    "texts": "text_index",
    "cache": "cache",
    "embedder": "embedder",
}


class Faulty:
    """Stands for a port. `down`: methods that fail at once; `hanging`: those that never answer; "all" is every one.

    A method that hangs passes over its deadline, as a silent socket does.
    """

    def __init__(self, inner: Any, backend: str):
        self.down: set[str] = set()
        self.hanging: set[str] = set()
        self.inner = inner
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(found) or name == "close":
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            if self.hanging & {name, "all"}:
                await asyncio.Event().wait()
            if self.down & {name, "all"}:
                raise BackendUnavailable(self._backend, "switched off")
            answer = await found(*arguments, **named)
            return self if answer is self.inner else answer

        return call


@dataclass(frozen=True)
class FaultyPlane:
    """A plane and its ports, by the names of `BACKENDS`."""

    plane: Plane
    ports: Mapping[str, Faulty]

    def cut_off(self, *names: str) -> None:
        """From now on every call to these fails."""
        for name in names:
            self.ports[name].down = {"all"}

    def silence(self, *names: str) -> None:
        """From now on no call to these is answered."""
        for name in names:
            self.ports[name].hanging = {"all"}

    def mend(self) -> None:
        """All is well again."""
        for port in self.ports.values():
            port.down, port.hanging = set(), set()


@asynccontextmanager
async def faulty_plane(policy: Mapping[str, Any] | None = None) -> AsyncIterator[FaultyPlane]:
    """A plane in memory over faulty ports, once somebody vouched for its tombstones."""
    inner: Mapping[str, Any] = {
        "records": InMemoryRecordStore(fields_of),
        "vectors": InMemoryVectorIndex(384),
        "texts": InMemoryTextIndex(),
        "cache": InProcessCache(CACHE_BYTES, asyncio.get_running_loop().time),
        "embedder": HashEmbedder(),
    }
    ports = {name: Faulty(port, BACKENDS[name]) for name, port in inner.items()}
    async with running_plane(policy={**KEEP_ALL, **(policy or {})}, **ports) as plane:
        made = FaultyPlane(plane, ports)
        await eventually_async(lambda: inner["cache"].is_vouched(NEVER_S), bool)
        try:
            yield made
        finally:
            made.mend()
