"""What can break, and how each is mended.

A fault is a context: entering it breaks, leaving it mends. Proxy faults leave by `heal`; ended processes are started
again on the same port and the same data, as a supervisor would.
"""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import grpc
import httpx
import redis
from qdrant_client import grpc as qdrant

from tests.chaos.plan import Fault, Menu
from tests.chaos.proxy import Proxy
from tests.chaos.stack import PREFIX, Stack
from tests.chaos.units import PlaneUnit, send_to_family
from tests.e2e.data_process import DataProcess

SKEW_S = 3600
MUTE_S = 0.4
"""How long answers are held back before the data plane is killed: long enough for a commit."""

Break = Callable[[Stack, Fault], AbstractAsyncContextManager[None]]


def menu_of(stack: Stack) -> Menu:
    """What can break in a stack."""
    planes, stores = stack.plane_names, stack.store_names
    proxied = [*stores, *planes]
    menu: dict[str, list[str]] = dict.fromkeys(("cut", "blackhole", "delay", "half_close", "throttle"), proxied)
    menu |= {
        "reset": proxied,
        "kill": [*stores, *planes, "control"],
        "pause": [*stores, *planes, "control"],
        "terminate": [*planes, "control"],
        "kill_before_answer": planes,
        "clock": planes,
        "policy_reload": ["control"],
    }
    if stack.options.stores == "embedded":
        menu |= {"index_deleted": ["data-1:texts", "data-1:vectors"], "disk_full": ["data-1"]}
    else:
        menu |= {"index_deleted": ["elasticsearch", "qdrant"], "flush": ["redis"]}
    return menu


def strike(stack: Stack, fault: Fault) -> AbstractAsyncContextManager[None]:
    """Breaks what the fault says; mends it on the way out."""
    return _KINDS[fault.kind](stack, fault)


async def heal_all(stack: Stack) -> None:
    """Ends whatever is still broken, whoever broke it."""
    for proxy in stack.proxies.values():
        await proxy.heal()
    for unit in stack.units.values():
        send_to_family(unit, signal.SIGCONT)
    if stack.disk is not None:
        stack.disk.free(stack.units["data-1"].pid)
    for unit in stack.units.values():
        await unit.start()


def _network(change: Callable[[Proxy, Fault], Awaitable[None]]) -> Break:
    @asynccontextmanager
    async def struck(stack: Stack, fault: Fault) -> AsyncIterator[None]:
        proxy = stack.proxies[fault.unit]
        await change(proxy, fault)
        try:
            yield
        finally:
            await proxy.heal()

    return struck


async def _slow(proxy: Proxy, fault: Fault) -> None:
    delay_s = 0.02 + 0.6 * fault.size
    await proxy.delay(delay_s, delay_s / 2)


async def _narrow(proxy: Proxy, fault: Fault) -> None:
    await proxy.throttle(int(4_000 + 60_000 * fault.size))


async def _reset(proxy: Proxy, _fault: Fault) -> None:
    proxy.reset()


@asynccontextmanager
async def _killed(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    unit = stack.units[fault.unit]
    await unit.kill()
    try:
        yield
    finally:
        await unit.start()


@asynccontextmanager
async def _terminated(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    unit = stack.units[fault.unit]
    await unit.stop()
    await unit.start()  # a rolling restart leaves no gap
    yield


@asynccontextmanager
async def _paused(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    unit = stack.units[fault.unit]
    send_to_family(unit, signal.SIGSTOP)
    try:
        yield
    finally:
        send_to_family(unit, signal.SIGCONT)


@asynccontextmanager
async def _killed_before_answer(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    """Calls arrive and are carried out, their answers do not: the data plane dies with them."""
    unit, proxy = stack.units[fault.unit], stack.proxies[fault.unit]
    await proxy.mute()
    await asyncio.sleep(MUTE_S)
    await unit.kill()
    proxy.reset()
    await proxy.heal()
    try:
        yield
    finally:
        await unit.start()


@asynccontextmanager
async def _clock_off(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    """One data plane's clock is an hour ahead, or behind."""
    unit = cast(PlaneUnit, stack.units[fault.unit])
    process = cast(DataProcess, unit.process)
    usual = process.program
    seconds = SKEW_S if fault.size < 0.5 else -SKEW_S
    process.program = ("tests.chaos.skewed_plane", str(seconds))
    try:
        await _restart(unit)
        yield
    finally:
        process.program = usual
        await _restart(unit)


async def _restart(unit: PlaneUnit) -> None:
    await unit.stop()
    await unit.start()


@asynccontextmanager
async def _reloading(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    async def reload() -> None:
        for _ in range(3 + int(fault.size * 10)):
            await stack.reload()
            await asyncio.sleep(0.3)

    reloading = asyncio.create_task(reload())
    try:
        yield
    finally:
        await reloading


@asynccontextmanager
async def _flushed(stack: Stack, _fault: Fault) -> AsyncIterator[None]:
    assert stack.places.redis_url
    await asyncio.to_thread(flush, stack.places.redis_url, keeps_queue=stack.options.queue == "redis")
    yield


def flush(url: str, *, keeps_queue: bool) -> None:
    """FLUSHALL; where the queue is in there, everything but the queue, for that one holds acknowledged writes."""
    with redis.Redis.from_url(url, socket_timeout=10) as client:
        if not keeps_queue:
            client.flushall()
            return
        keys = [key for key in client.scan_iter(count=1000) if b"{queue}" not in key]
        for start in range(0, len(keys), 1000):
            client.delete(*keys[start : start + 1000])


@asynccontextmanager
async def _index_deleted(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    if fault.unit == "elasticsearch":
        assert stack.places.elasticsearch_url
        await asyncio.to_thread(_delete_elasticsearch, stack.places.elasticsearch_url)
    elif fault.unit == "qdrant":
        assert stack.places.qdrant_url
        await _delete_qdrant(stack.places.qdrant_url.removeprefix("http://"))
    else:
        await _delete_folder(stack, fault)
    yield


def _delete_elasticsearch(url: str) -> None:
    with httpx.Client(base_url=url, timeout=10, trust_env=False) as client:
        for index in client.get("/_cat/indices?format=json").raise_for_status().json():
            if index["index"].startswith(PREFIX):
                client.delete(f"/{index['index']}").raise_for_status()


async def _delete_qdrant(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = qdrant.CollectionsStub(channel)  # type: ignore[no-untyped-call]  # generated
        listed = await stub.List(qdrant.ListCollectionsRequest(), timeout=10)
        for found in listed.collections:
            await stub.Delete(qdrant.DeleteCollection(collection_name=found.name), timeout=10)


async def _delete_folder(stack: Stack, fault: Fault) -> None:
    unit, name = cast(PlaneUnit, stack.units[fault.unit]), fault.target.partition(":")[2]
    await unit.kill()
    shutil.rmtree(cast(DataProcess, unit.process).data_dir / name, ignore_errors=True)
    await unit.start()


@asynccontextmanager
async def _disk_full(stack: Stack, fault: Fault) -> AsyncIterator[None]:
    assert stack.disk is not None
    unit = stack.units[fault.unit]
    assert unit.pid is not None
    await asyncio.to_thread(stack.disk.fill, unit.pid)
    try:
        yield
    finally:
        stack.disk.free(unit.pid)


_KINDS: Mapping[str, Break] = {
    "cut": _network(lambda proxy, _fault: proxy.cut()),
    "blackhole": _network(lambda proxy, _fault: proxy.blackhole()),
    "delay": _network(_slow),
    "half_close": _network(lambda proxy, _fault: proxy.half_close()),
    "throttle": _network(_narrow),
    "reset": _network(_reset),
    "kill": _killed,
    "terminate": _terminated,
    "pause": _paused,
    "kill_before_answer": _killed_before_answer,
    "clock": _clock_off,
    "policy_reload": _reloading,
    "flush": _flushed,
    "index_deleted": _index_deleted,
    "disk_full": _disk_full,
}
