"""Guarded ports: limits, places, breakers, and what a failure says."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from dataplane import ports
from dataplane.adapters.wrappers.call_classes import CALL_CLASSES
from dataplane.adapters.wrappers.guarded import Guard, Probes, guarded, guarded_records
from dataplane.errors import BackendUnavailable, NotYet
from dataplane.logic.breaker import BreakerState
from dataplane.model import Scope
from dataplane.ports import Cache, RecordStore
from memplane.policy.degradation import BackendLimits
from tests.deadline import eventually, eventually_async

A = Scope(("a",))
SOON_S = 0.05
QUICK = BackendLimits(
    timeout_s=SOON_S, write_timeout_s=2 * SOON_S, concurrency=2, min_failures=2, probe_interval_s=SOON_S
)


def now_s() -> float:
    return asyncio.get_running_loop().time()


def later() -> float:
    return now_s() + 30


class Switched:
    """A cache that is well, fails, or never answers."""

    def __init__(self) -> None:
        self.mode = "well"
        self.calls = 0
        self.cancelled = 0
        self.deadline_s = 0.0
        self.error: Exception | None = None

    async def _answer(self, deadline_s: float) -> None:
        self.calls += 1
        self.deadline_s = deadline_s
        if self.error is not None:
            raise self.error
        if self.mode == "silent":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

    async def stamp(self, _scope: Scope, deadline_s: float) -> str:
        await self._answer(deadline_s)
        return "stamp"

    async def drop(self, _namespaces: Any, deadline_s: float) -> None:
        await self._answer(deadline_s)

    async def examine(self, deadline_s: float) -> str:
        await self._answer(deadline_s)
        return "well"


@dataclass
class Rig:
    """A switched cache, guarded by limits that may be changed."""

    inner: Switched = field(default_factory=Switched)
    limits: BackendLimits = QUICK

    def __post_init__(self) -> None:
        async def probe(deadline_s: float) -> None:
            await self.inner.stamp(A, deadline_s)

        made = guarded(cast(Cache, self.inner), Cache, "cache", lambda: self.limits, Probes(probe, probe))
        self.port: Cache = made[0]
        self.guard: Guard = made[1]

    def state(self, lane: int = 0) -> BreakerState:
        return self.guard.lanes[lane].breaker.state

    async def refused(self, deadline_s: float | None = None) -> str:
        with pytest.raises(BackendUnavailable) as raised:
            await self.port.stamp(A, later() if deadline_s is None else deadline_s)
        return raised.value.words

    async def opened(self) -> None:
        self.inner.mode = "silent"
        await asyncio.gather(self.refused(), self.refused())
        assert self.state() is BreakerState.OPEN


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    await made.guard.close()


def test_every_async_method_of_every_port_has_its_class() -> None:
    for port, classes in CALL_CLASSES.items():
        methods = {name for name in dir(port) if inspect.iscoroutinefunction(getattr(port, name))}
        assert set(classes) == {name for name in methods if not name.startswith("_")}, port.__name__
    guarded_ports = {"RecordReads", "RecordStore", "VectorIndex", "TextIndex", "Cache", "WriteQueue", "Embedder"}
    assert {port.__name__ for port in CALL_CLASSES} == guarded_ports
    parts = {"Backend", "Index", "Outbox"}
    protocols = {name for name in ports.__all__ if getattr(getattr(ports, name), "_is_protocol", False)}
    assert protocols - guarded_ports - parts == {"Clock"}


async def test_a_call_gets_what_the_policy_allows_or_what_its_caller_has_left(rig: Rig) -> None:
    begun_s = now_s()
    await rig.port.stamp(A, later())
    assert begun_s + SOON_S <= rig.inner.deadline_s <= now_s() + SOON_S
    await rig.port.drop(["a"], deadline_s=later())
    assert rig.inner.deadline_s >= begun_s + 2 * SOON_S
    mine_s = now_s() + SOON_S / 2
    await rig.port.stamp(A, mine_s)
    assert rig.inner.deadline_s == mine_s
    far_s = later()
    await rig.port.examine(far_s)
    assert rig.inner.deadline_s == far_s


async def test_a_change_of_limits_holds_from_the_next_call_on(rig: Rig) -> None:
    rig.limits = QUICK.model_copy(update={"timeout_s": 20.0})
    await rig.port.stamp(A, later())
    assert rig.inner.deadline_s > now_s() + 10


async def test_a_silent_backend_is_let_go_at_the_limit_and_then_not_asked(rig: Rig) -> None:
    await rig.opened()
    assert rig.inner.cancelled == 2
    calls = rig.inner.calls
    assert await rig.refused() == "reads are not tried for now, it counts as down: does not answer in time"
    assert rig.inner.calls == calls


async def test_reads_that_fail_do_not_close_the_way_to_writes(rig: Rig) -> None:
    await rig.opened()
    rig.inner.mode = "well"
    await rig.port.drop(["a"], later())
    assert rig.state(1) is BreakerState.CLOSED


async def test_a_probe_finds_a_backend_that_is_back(rig: Rig) -> None:
    await rig.opened()
    rig.inner.mode = "well"
    await eventually(rig.state, lambda state: state is BreakerState.HALF_OPEN, 5)
    assert await rig.port.stamp(A, later()) == "stamp"
    assert rig.state() is BreakerState.CLOSED


async def test_without_callers_probes_alone_close_it(rig: Rig) -> None:
    await rig.opened()
    rig.inner.mode = "well"
    await eventually(rig.state, lambda state: state is BreakerState.CLOSED, 5)


async def test_further_calls_wait_for_a_place_within_their_time_and_are_no_failure_of_the_backend(rig: Rig) -> None:
    rig.inner.mode = "silent"
    rig.limits = QUICK.model_copy(update={"concurrency": 1, "min_failures": 20})
    words = await asyncio.gather(*(rig.refused() for _ in range(3)))
    assert sorted(words) == ["busy: 1 reads are under way"] * 2 + ["does not answer in time"]
    rig.inner.mode = "well"
    answers = await asyncio.gather(*(rig.port.stamp(A, later()) for _ in range(5)))
    assert answers == ["stamp"] * 5


async def test_who_waits_for_a_place_is_sent_away_when_the_breaker_opens(rig: Rig) -> None:
    rig.inner.mode = "silent"
    rig.limits = QUICK.model_copy(update={"min_failures": 1, "concurrency": 1, "write_timeout_s": 60.0})
    begun_s = now_s()
    words = await asyncio.gather(*(rig.refused() for _ in range(4)))
    assert now_s() - begun_s < 10 * SOON_S
    assert all("does not answer in time" in each or "busy" in each for each in words)
    assert rig.state() is BreakerState.OPEN


async def test_a_caller_in_a_hurry_tells_nothing_but_a_probe_in_its_place_does(rig: Rig) -> None:
    rig.inner.mode = "silent"
    await rig.refused(now_s() + 0.001)
    await rig.refused(now_s() + 0.001)
    assert rig.state() is BreakerState.CLOSED

    async def hurry() -> BreakerState:
        await rig.refused(now_s() + 0.001)
        return rig.state()

    await eventually_async(hurry, lambda state: state is BreakerState.OPEN, 10)


async def test_not_yet_and_errors_that_the_port_tells_of_are_no_failures(rig: Rig) -> None:
    for error in (NotYet("cache", "later"), ValueError("a defect")):
        rig.inner.error = error
        for _ in range(3):
            with pytest.raises(type(error)):
                await rig.port.stamp(A, later())
    assert rig.state() is BreakerState.CLOSED


async def test_a_caller_that_hangs_up_gives_its_place_back(rig: Rig) -> None:
    rig.inner.mode = "silent"
    rig.limits = QUICK.model_copy(update={"concurrency": 1, "timeout_s": 20.0})
    call = asyncio.create_task(rig.refused())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(rig.refused())
    await asyncio.sleep(0)
    for task in (waiting, call):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    rig.inner.mode = "well"
    assert await rig.port.stamp(A, later()) == "stamp"


class Reads:
    """Something to read from, which may be down."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_down = False
        self.replica: Reads | None = None

    async def last_position(self, _deadline_s: float) -> int:
        if self.is_down:
            raise BackendUnavailable("record_store", "down")
        return self.position

    async def reads(self, _at_least: int, _deadline_s: float) -> "Reads":
        return self.replica or self


async def test_a_replica_that_fails_is_replaced_by_the_store_and_then_passed_over() -> None:
    primary, replica = Reads(8), Reads(7)
    primary.replica = replica
    probes = Probes(primary.last_position, primary.last_position)
    store, guard = guarded_records(cast(RecordStore, primary), "record_store", lambda: QUICK, probes)
    try:
        reads = await store.reads(0, later())
        assert await reads.last_position(later()) == 7
        replica.is_down = True
        for _ in range(2):
            assert await (await store.reads(0, later())).last_position(later()) == 8
        assert await store.reads(0, later()) is store
        replica.is_down = False
        replica_lane = guard.lanes[2].breaker
        await eventually(lambda: replica_lane.state, lambda state: state is BreakerState.CLOSED, 5)
        assert await (await store.reads(0, later())).last_position(later()) == 7
        primary.replica = None
        assert await store.reads(0, later()) is store
    finally:
        await guard.close()


async def test_what_was_read_once_from_the_store_is_not_followed_by_what_a_replica_that_lags_says() -> None:
    primary, replica = Reads(8), Reads(7)
    primary.replica = replica
    probes = Probes(primary.last_position, primary.last_position)
    store, guard = guarded_records(cast(RecordStore, primary), "record_store", lambda: QUICK, probes)
    try:
        reads = await store.reads(0, later())
        replica.is_down = True
        assert await reads.last_position(later()) == 8
        replica.is_down = False
        assert await reads.last_position(later()) == 8
        assert await (await store.reads(0, later())).last_position(later()) == 7
    finally:
        await guard.close()
