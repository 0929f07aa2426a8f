"""Access counts by way of Redis: none lost, each memory changed once, by one data plane at a time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dataplane.adapters.redis import counters as module
from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.counters import RedisAccessCounters
from dataplane.adapters.redis.options import RedisMode, RedisOptions
from dataplane.adapters.wrappers.counted_records import CountedRecords
from dataplane.changes import AccessRecord
from dataplane.errors import BackendUnavailable
from tests.deadline import eventually
from tests.servers.redis import RedisCluster, RedisServer

NOW_US = 1_760_000_000_123_456
ONE = AccessRecord("mem_1", "acme.sales", NOW_US, 0.1, 2.0, 0.1)
NEVER_S = 1e12


class Rows:
    """A record store of which only the counting is there."""

    def __init__(self) -> None:
        self.changes: list[AccessRecord] = []
        self.is_down = False

    async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
        if self.is_down:
            raise BackendUnavailable("record_store")
        self.changes += accesses

    @property
    def counts(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        for access in self.changes:
            counted[access.memory_id] += access.count
        return dict(counted)


@pytest.fixture
def rows() -> Any:
    return Rows()


@pytest.fixture(params=["redis_server", "redis_cluster"])
async def connections(request: pytest.FixtureRequest) -> AsyncIterator[list[RedisConnection]]:
    """Two data planes' connections to one empty Redis."""
    server = request.getfixturevalue(request.param)
    if isinstance(server, RedisCluster):
        server.flush()
        options = RedisOptions(mode=RedisMode.CLUSTER, addresses=(server.nodes[0].address,))
    else:
        assert isinstance(server, RedisServer)
        server.call("FLUSHALL")
        options = RedisOptions(addresses=(server.address,))
    deadline_s = asyncio.get_running_loop().time() + 10
    made = [await RedisConnection.open(options, "cache", deadline_s) for _ in range(2)]
    yield made
    for connection in made:
        await connection.close()


@pytest.fixture
async def planes(connections: list[RedisConnection]) -> list[RedisAccessCounters]:
    return [RedisAccessCounters(connection, timeout_s=5) for connection in connections]


async def test_hundreds_of_accesses_from_everywhere_change_a_row_once(
    planes: list[RedisAccessCounters], rows: Any
) -> None:
    for number in range(200):
        await planes[number % 2].add([replace(ONE, time_us=NOW_US + number), replace(ONE, memory_id="mem_2")])
    assert await planes[0].flush(rows) == 2
    assert rows.counts == {"mem_1": 200, "mem_2": 200}
    assert {access.time_us for access in rows.changes} == {NOW_US // 1_000_000 * 1_000_000}
    assert {(access.hit_increment, access.max_strength, access.monthly_decay) for access in rows.changes} == {
        (0.1, 2.0, 0.1)
    }
    assert await planes[1].flush(rows) == 0


async def test_flushing_everywhere_at_once_counts_each_access_once(
    planes: list[RedisAccessCounters], rows: Any
) -> None:
    async def add(counters: RedisAccessCounters) -> None:
        for number in range(50):
            await counters.add([replace(ONE, memory_id=f"mem_{number % 5}")])

    async def flush(counters: RedisAccessCounters) -> None:
        for _ in range(20):
            await counters.flush(rows)

    await asyncio.gather(*(act(plane) for plane in planes for act in (add, flush)))
    await planes[0].flush(rows)
    assert rows.counts == {f"mem_{number}": 20 for number in range(5)}


async def test_what_a_failed_flush_left_is_written_by_the_next(planes: list[RedisAccessCounters], rows: Any) -> None:
    await planes[0].add([ONE])
    rows.is_down = True
    with pytest.raises(BackendUnavailable):
        await planes[0].flush(rows)
    await planes[1].add([replace(ONE, memory_id="mem_2")])
    rows.is_down = False
    assert await planes[1].flush(rows) == 0
    assert await planes[0].flush(rows) == 1
    assert await planes[1].flush(rows) == 1
    assert rows.counts == {"mem_1": 1, "mem_2": 1}


async def test_a_flusher_that_died_is_followed_when_its_lease_is_over(
    planes: list[RedisAccessCounters], rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_MS", 50)
    await planes[0].add([ONE])
    rows.is_down = True
    with pytest.raises(BackendUnavailable):
        await planes[0].flush(rows)
    rows.is_down = False
    counted = CountedRecords(rows, planes[1], interval_s=0.02)
    counted.start()
    await eventually(lambda: rows.counts, lambda counts: counts == {"mem_1": 1})
    await counted.stop()


async def test_a_flusher_that_lost_its_lease_deletes_nothing(planes: list[RedisAccessCounters], rows: Any) -> None:
    await planes[0].add([ONE])

    class Slow(Rows):
        async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
            await super().record_accesses(accesses, deadline_s)
            connection = planes[0]._connection
            await connection.client.set(connection.key("{a}", "flusher"), "another")

    slow: Any = Slow()
    await planes[0].flush(slow)
    connection = planes[0]._connection
    assert await connection.client.exists(connection.key("{a}", "taken"))


async def test_without_redis_or_with_too_many_counts_the_store_is_told_at_once(
    planes: list[RedisAccessCounters], rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FIELDS", 2)
    counted = CountedRecords(rows, planes[0])
    await counted.records.record_accesses([ONE, replace(ONE, memory_id="mem_2")], NEVER_S)
    assert rows.counts == {}
    await counted.records.record_accesses([replace(ONE, memory_id="mem_3")], NEVER_S)
    assert rows.counts == {"mem_3": 1}
    await planes[0].flush(rows)
    await counted.records.record_accesses([replace(ONE, memory_id="mem_4")], NEVER_S)
    assert "mem_4" not in rows.counts
    await planes[0]._connection.close()
    monkeypatch.setattr(planes[0], "_timeout_s", 0.0)
    await counted.records.record_accesses([replace(ONE, memory_id="mem_5")], NEVER_S)
    assert rows.counts["mem_5"] == 1
