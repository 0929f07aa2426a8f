"""Data planes in this process on PostgreSQL, Redis, Elasticsearch and the Qdrant peer, each behind a proxy."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

from dataplane.config import read_config
from dataplane.stores import open_stores
from memplane.process import SystemClock
from tests.chaos.proxy import Proxy
from tests.chaos.stack import Places
from tests.deadline import eventually_async
from tests.e2e.company import CompanyStores
from tests.integration.harness import KEEP_ALL, Plane, running_plane, search

NAMES = {
    "postgres": "record_store",
    "redis": "cache",
    "elasticsearch": "text_index",
    "qdrant": "vector_index",
}
"""The servers, and what answers call them."""
LIMITS = {backend: {"timeout_s": 10.0} for backend in ("queue", "embedder", *NAMES.values())}
"""Roomy: what is cut off fails at once, and what is not may be slow on a busy machine."""


@dataclass(frozen=True)
class CompanyPlanes:
    """The planes, the proxies by the server's name, and where the servers' own contents can be read."""

    planes: Sequence[Plane]
    proxies: Mapping[str, Proxy]
    places: Places

    async def cut_off(self, *names: str) -> None:
        """Connections to these servers are reset, and refused from now on."""
        for name in names:
            await self.proxies[name].cut()

    async def mend(self) -> None:
        """Every server can be reached again, and the planes have noticed."""
        for proxy in self.proxies.values():
            await proxy.heal()
        for plane in self.planes:
            await eventually_async(partial(_is_well, plane), bool, 20)


async def _is_well(plane: Plane) -> bool:
    try:
        found = await search(plane, f"nothing {plane.clock.now_us()} {len(plane.codes)}", record_access=False)
    except grpc.aio.AioRpcError:
        return False
    return not found.degraded


@asynccontextmanager
async def company_planes(
    company: CompanyStores, folder: Path, name: str, count: int = 1
) -> AsyncIterator[CompanyPlanes]:
    """So many planes of one MemPlane called `name`, which nobody else may use; its database is dropped afterwards."""
    ports = {
        "postgres": company.postgres.port,
        "redis": company.redis.port,
        "elasticsearch": company.elasticsearch.port,
        "qdrant": company.qdrant.port,
    }
    async with AsyncExitStack() as stack:
        config = await company.configure(folder, name)
        stack.callback(company.postgres.drop, name)
        text, proxies = config.read_text(), {}
        for each, port in ports.items():
            proxies[each] = Proxy(port)
            await proxies[each].start()
            stack.push_async_callback(proxies[each].close)
            text = text.replace(str(port), str(proxies[each].port))
        config.write_text(text)
        planes = [await _plane(config, folder / str(number), stack) for number in range(count)]
        owner = company.postgres.dsn_of(name)
        places = Places((), owner, company.redis.url, company.elasticsearch.url, company.qdrant.url)
        yield CompanyPlanes(planes, proxies, places)


async def _plane(config: Path, folder: Path, stack: AsyncExitStack) -> Plane:
    flags = {"--config": str(config), "--data-dir": str(folder), "--embedder": "hash"}
    unused = {"--trusted-key": "key", "--node-key": "key"}
    given = read_config([part for flag in (flags | unused).items() for part in flag], {})
    stores = await open_stores(given, stack, SystemClock(), lambda *_: None)
    return await stack.enter_async_context(
        running_plane(
            policy={**KEEP_ALL, "degradation_policy": LIMITS},
            records=stores.records,
            vectors=stores.spaces.current.vectors,
            texts=stores.texts,
            cache=stores.cache,
            queue=stores.queue,
            counters=stores.counters,
            hot_memories=stores.hot_memories,
            own_indexes=False,
            owner=f"plane-of-the-tests/{folder.name}",
        )
    )
