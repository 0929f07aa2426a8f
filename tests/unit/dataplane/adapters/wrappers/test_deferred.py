import asyncio

import pytest

from dataplane.adapters.wrappers import deferred
from dataplane.adapters.wrappers.deferred import opened_or_deferred
from dataplane.adapters.wrappers.measured import measured_records
from dataplane.errors import BackendUnavailable, Misconfigured
from dataplane.model import Scope
from dataplane.ports import Cache, Examination, RecordStore
from tests.deadline import eventually_async

SCOPE = Scope(("a",))


class Store:
    """Opens once it is told to."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.closed = False

    async def open(self) -> "Store":
        if self.failures:
            raise self.failures[0] if len(self.failures) == 1 else self.failures.pop(0)
        return self

    async def get(self, scope: Scope, keys: list[str], deadline_s: float) -> list[bytes | None]:
        return [b"v"]

    async def reads(self, at_least: int, deadline_s: float) -> "Store":
        return self

    async def examine(self, deadline_s: float) -> Examination:
        return Examination("Store 1")

    async def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "RETRY_S", 0.001)


async def test_a_backend_that_answers_is_itself() -> None:
    store = Store()
    assert await opened_or_deferred(Cache, "cache", store.open) is store


async def test_a_wrong_setting_ends_the_start() -> None:
    with pytest.raises(Misconfigured):
        await opened_or_deferred(Cache, "cache", Store(Misconfigured("cache", "wrong password")).open)


async def test_until_it_is_there_every_call_says_so_and_then_all_work() -> None:
    store = Store(BackendUnavailable("cache", "refused"))
    cache = await opened_or_deferred(Cache, "cache", store.open)
    with pytest.raises(BackendUnavailable, match="refused"):
        await cache.get(SCOPE, ["k"], 0)
    with pytest.raises(BackendUnavailable, match="refused"):
        await cache.examine(0)
    with pytest.raises(AttributeError):
        cache.no_such_method  # noqa: B018 - the access is the test
    store.failures.clear()
    found: list[list[bytes | None]] = []

    async def answers() -> bool:
        try:
            found.append(await cache.get(SCOPE, ["k"], 0))
        except BackendUnavailable:
            return False
        return True

    await eventually_async(answers, bool)
    assert found == [[b"v"]]
    assert (await cache.examine(0)).server == "Store 1"
    await cache.close()
    assert store.closed


async def test_a_wrong_setting_that_shows_later_is_a_problem() -> None:
    store = Store(BackendUnavailable("cache", "refused"), Misconfigured("cache", "wrong password; give another"))
    cache = await opened_or_deferred(Cache, "cache", store.open)
    problems: list[str] = []

    async def told() -> None:
        while not problems:
            try:
                problems.extend(each.message for each in (await cache.examine(0)).problems)
            except BackendUnavailable:
                await asyncio.sleep(0)

    await asyncio.wait_for(told(), 10)
    assert problems == ["wrong password; give another"]
    await cache.close()


async def test_a_record_store_that_came_late_is_read_as_itself_and_not_as_a_replica() -> None:
    store = Store(BackendUnavailable("record_store", "refused"))
    records = measured_records(await opened_or_deferred(RecordStore, "record_store", store.open), lambda *_: None)
    store.failures.clear()

    async def reads_from_itself() -> bool:
        try:
            return await records.reads(0, 0) is records
        except BackendUnavailable:
            return False

    await eventually_async(reads_from_itself, bool)
    await records.close()
