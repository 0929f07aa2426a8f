"""What health says, with a record store that fails as it is told to."""

from typing import Any

import pytest
from grpc_health.v1 import health, health_pb2

from dataplane.errors import BackendUnavailable
from dataplane.health import LEAST_FREE_BYTES, POLICY, READS, WRITES, HealthChecks, HealthParts
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from dataplane.report import Calls, Reporter
from memplane.policy.degradation import StaleAction
from tests.integration.harness import FixtureClock
from tests.unit.dataplane.test_policy_holder import SNAPSHOT, snapshot


class FailingStore:
    """Fails the methods named in `fails`."""

    def __init__(self, *fails: str) -> None:
        self.fails = set(fails)

    def __getattr__(self, name: str) -> Any:
        async def answer(*_given: object) -> object:
            if name in self.fails:
                raise BackendUnavailable("record_store", "SQLITE_FULL")
            return [] if name == "progress" else 3

        return answer


async def states(servicer: health.aio.HealthServicer) -> dict[str, bool]:
    found = {}
    for service in ("", READS, WRITES):
        answer = await servicer.Check(health_pb2.HealthCheckRequest(service=service), None)
        found[service] = answer.status == health_pb2.HealthCheckResponse.SERVING
    return found


class Looking:
    """Health checks of a store; the policy is there unless told otherwise."""

    def __init__(
        self, store: FailingStore, has_policy: bool = True, queue: FailingStore | None = None, own_queue: bool = False
    ) -> None:
        self.free_bytes = LEAST_FREE_BYTES
        self.stands_in = False
        self.holder = holder = PolicyHolder()
        if has_policy:
            holder.swap(SNAPSHOT, PolicyOrigin.CONTROL_PLANE, 1)
        given: Any = HealthParts(store, queue, self._without_records, lambda: self.free_bytes, own_queue=own_queue)
        self.servicer = health.aio.HealthServicer()
        self.reporter = Reporter(holder, Calls(), (), [("record_store", "sqlite")], FixtureClock())  # type: ignore[arg-type]
        self.checks = HealthChecks(given, holder, self.reporter, self.servicer)

    async def _without_records(self, _deadline_s: float) -> None:
        if not self.stands_in:
            raise BackendUnavailable("record_store")

    async def look(self) -> tuple[dict[str, bool], str]:
        """What health says, and what the report says of the record store."""
        await self.checks.look()
        (store,) = self.reporter.report().backends
        return await states(self.servicer), store.detail


async def test_a_well_store_with_a_policy_serves_reads_and_writes() -> None:
    looking = Looking(FailingStore())
    assert await looking.look() == ({"": True, READS: True, WRITES: True}, "")
    assert looking.reporter.memory_count == 3


async def test_without_a_policy_it_is_alive_and_nothing_else() -> None:
    found, _ = await Looking(FailingStore(), has_policy=False).look()
    assert found == {"": True, READS: False, WRITES: False}


async def test_a_full_disk_stops_writes_alone_is_reported_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingStore("save_marker")
    looking = Looking(store)
    for _ in range(2):
        found, detail = await looking.look()
        assert found == {"": True, READS: True, WRITES: False}
        assert detail == "takes no writes: the disk is full (SQLITE_FULL)"
    assert len(caplog.records) == 1
    store.fails.clear()
    assert await looking.look() == ({"": True, READS: True, WRITES: True}, "")


async def test_writes_are_called_off_before_the_last_space_is_gone() -> None:
    looking = Looking(FailingStore())
    looking.free_bytes = LEAST_FREE_BYTES - 1
    found, detail = await looking.look()
    assert found == {"": True, READS: True, WRITES: False}
    assert detail == "takes no writes: 16383 KiB left on the disk; it needs 16384 KiB"


@pytest.mark.parametrize("method", ["progress", "count"])
async def test_a_store_that_does_not_read_serves_nothing(method: str) -> None:
    found, detail = await Looking(FailingStore(method)).look()
    assert found == {"": True, READS: False, WRITES: False}
    assert detail == "the disk is full (SQLITE_FULL)"


async def test_while_indexes_and_tombstones_stand_in_for_the_store_reads_are_served() -> None:
    looking = Looking(FailingStore("progress"))
    looking.stands_in = True
    assert await looking.look() == ({"": True, READS: True, WRITES: False}, "the disk is full (SQLITE_FULL)")
    looking.stands_in = False
    found, _ = await looking.look()
    assert found == {"": True, READS: False, WRITES: False}


async def test_standing_in_is_of_no_use_without_a_policy() -> None:
    looking = Looking(FailingStore("progress"), has_policy=False, queue=FailingStore())
    looking.stands_in = True
    found, _ = await looking.look()
    assert found == {"": True, READS: False, WRITES: False}


@pytest.mark.parametrize("fails", ["progress", "save_marker"])
async def test_a_queue_that_answers_takes_writes_for_a_store_that_does_not(fails: str) -> None:
    queue = FailingStore()
    looking = Looking(FailingStore(fails), queue=queue)
    assert (await looking.look())[0][WRITES]
    queue.fails = {"depth"}
    assert not (await looking.look())[0][WRITES]


async def test_a_queue_on_the_same_full_disk_takes_nothing() -> None:
    looking = Looking(FailingStore(), queue=FailingStore(), own_queue=True)
    looking.free_bytes = LEAST_FREE_BYTES - 1
    assert not (await looking.look())[0][WRITES]
    elsewhere = Looking(FailingStore(), queue=FailingStore(), own_queue=False)
    elsewhere.free_bytes = LEAST_FREE_BYTES - 1
    assert (await elsewhere.look())[0][WRITES]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("serve", {"": True, READS: True, WRITES: True}),
        ("read_only", {"": True, READS: True, WRITES: False}),
        ("deny", {"": True, READS: False, WRITES: False}),
    ],
)
async def test_a_stale_policy_ends_what_it_says_and_is_logged_once(
    action: StaleAction, expected: dict[str, bool], caplog: pytest.LogCaptureFixture
) -> None:
    looking = Looking(FailingStore())
    looking.holder.swap(snapshot(60.0, action), PolicyOrigin.LAST_GOOD, 1, age_s=61.0)
    for _ in range(2):
        found, _ = await looking.look()
        assert found == expected
        assert await policy_state(looking) is False
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert looking.reporter.report().stale_action == action
    looking.holder.confirm("sha256:1", 1)
    assert (await looking.look())[0] == {"": True, READS: True, WRITES: True}
    assert await policy_state(looking) is True
    assert looking.reporter.report().stale_action == ""


async def policy_state(looking: Looking) -> bool:
    answer = await looking.servicer.Check(health_pb2.HealthCheckRequest(service=POLICY), None)  # type: ignore[arg-type]
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
