import asyncio

import pytest

from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.errors import BackendUnavailable
from dataplane.model import SYSTEM_SCOPE, Scope
from tests.deadline import eventually

SALES = Scope(("acme.sales",))
HR = Scope(("acme.hr",), ("acme",))
NEVER_S = 1e12


class LameCache(InProcessCache):
    """A cache that does not take changes while it is lame."""

    def __init__(self) -> None:
        super().__init__(10_000, lambda: 0.0)
        self.is_lame = False
        self.told: list[tuple[str, tuple[str, ...]]] = []

    async def drop(self, namespaces, deadline_s):  # type: ignore[no-untyped-def]
        self._tell("drop", namespaces)
        await super().drop(namespaces, deadline_s)

    async def bury(self, memory_ids, deadline_s):  # type: ignore[no-untyped-def]
        self._tell("bury", memory_ids)
        await super().bury(memory_ids, deadline_s)

    async def unbury(self, memory_ids, deadline_s):  # type: ignore[no-untyped-def]
        self._tell("unbury", memory_ids)
        await super().unbury(memory_ids, deadline_s)

    def _tell(self, what: str, ids: list[str]) -> None:
        if self.is_lame:
            raise BackendUnavailable("cache")
        self.told.append((what, tuple(ids)))


@pytest.fixture
def lame() -> LameCache:
    return LameCache()


async def test_while_the_cache_answers_nothing_is_owed(lame: LameCache) -> None:
    cache = OwingCache(lame)
    before = await cache.stamp(SALES, NEVER_S)
    await cache.drop(["acme.sales"], NEVER_S)
    assert await cache.stamp(SALES, NEVER_S) != before
    assert not cache.owes(["acme.sales"])


async def test_what_cannot_be_dropped_is_owed_and_not_trusted_until_it_is(lame: LameCache) -> None:
    cache = OwingCache(lame)
    before = await cache.stamp(SALES, NEVER_S)
    lame.is_lame = True
    await cache.drop(["acme.sales"], NEVER_S)
    assert cache.owes(["acme", "acme.sales"])
    assert not cache.owes(["acme"])
    for scope in (SALES, Scope(("acme.hr",), ("acme.sales",)), SYSTEM_SCOPE):
        with pytest.raises(BackendUnavailable):
            await cache.stamp(scope, NEVER_S)
    assert await cache.stamp(HR, NEVER_S)
    with pytest.raises(BackendUnavailable):
        await cache.pay()
    lame.is_lame = False
    await cache.pay()
    assert not cache.owes(["acme.sales"])
    assert await cache.stamp(SALES, NEVER_S) != before


async def test_debts_are_paid_in_the_background_and_at_the_end(lame: LameCache) -> None:
    cache = OwingCache(lame, interval_s=0.01)
    lame.is_lame = True
    await cache.drop(["acme.sales"], NEVER_S)
    cache.start()
    lame.is_lame = False
    await eventually(lambda: cache.owes(["acme.sales"]), lambda owed: not owed)
    lame.is_lame = True
    await cache.drop(["acme.hr"], NEVER_S)
    lame.is_lame = False
    await cache.close()
    assert lame.told[-1] == ("drop", ("acme.hr",))


async def test_a_defect_does_not_end_the_paying(lame: LameCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = OwingCache(lame, interval_s=0.01)
    lame.is_lame = True
    await cache.bury(["mem_1"], NEVER_S)
    lame.is_lame = False
    with monkeypatch.context() as patched:
        told: list[str] = []

        def fail(what: str, _ids: list[str]) -> None:
            told.append(what)
            raise ValueError("a defect")

        patched.setattr(lame, "_tell", fail)
        cache.start()
        await eventually(lambda: told, bool)
    await eventually(lambda: lame.told, lambda found: found == [("bury", ("mem_1",))])
    await cache.close()


async def test_the_last_word_on_a_tombstone_counts(lame: LameCache) -> None:
    cache = OwingCache(lame)
    await cache.bury(["mem_1", "mem_2"], NEVER_S)
    lame.is_lame = True
    await cache.bury(["mem_3", "mem_4"], NEVER_S)
    await cache.unbury(["mem_1", "mem_4"], NEVER_S)
    asked = ["mem_1", "mem_2", "mem_3", "mem_4"]
    assert await cache.buried(asked, NEVER_S) == {"mem_2", "mem_3"}
    lame.is_lame = False
    await cache.unbury(["mem_3"], NEVER_S)
    await cache.pay()
    assert await lame.buried(asked, NEVER_S) == {"mem_2"}


async def test_a_drop_owed_again_while_it_is_paid_stays_owed(lame: LameCache) -> None:
    cache = OwingCache(lame)
    cache.owe(["acme.sales"])
    paying = asyncio.Event()
    inner_drop = lame.drop

    async def slow_drop(namespaces: list[str], deadline_s: float) -> None:
        await inner_drop(namespaces, deadline_s)  # type: ignore[no-untyped-call]
        if not paying.is_set():
            paying.set()
            cache.owe(["acme.sales"])

    lame.drop = slow_drop  # type: ignore[method-assign]
    await cache.pay()
    assert [what for what, _ in lame.told] == ["drop", "drop"]
    assert not cache.owes(["acme.sales"])


async def test_drops_that_come_while_one_is_under_way_go_together_in_the_next(lame: LameCache) -> None:
    cache = OwingCache(lame)
    goes_on = asyncio.Event()
    inner_drop = lame.drop

    async def slow_drop(namespaces: list[str], deadline_s: float) -> None:
        await inner_drop(namespaces, deadline_s)  # type: ignore[no-untyped-call]
        await goes_on.wait()

    lame.drop = slow_drop  # type: ignore[method-assign]
    dropping = [asyncio.create_task(cache.drop([f"n{number % 3}"], NEVER_S)) for number in range(10)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = asyncio.create_task(cache.drop(["late"], NEVER_S))
    await asyncio.sleep(0)
    assert not any(task.done() for task in (*dropping, late))
    goes_on.set()
    await asyncio.gather(*dropping, late)
    assert len(lame.told) == 2
    assert {name for _, names in lame.told for name in names} == {"n0", "n1", "n2", "late"}
    assert "late" in lame.told[1][1]


async def test_when_the_leading_call_is_cancelled_what_went_with_it_is_owed(lame: LameCache) -> None:
    cache = OwingCache(lame)

    async def endless_drop(_namespaces: list[str], _deadline_s: float) -> None:
        await asyncio.Event().wait()

    lame.drop = endless_drop  # type: ignore[method-assign]
    leading = asyncio.create_task(cache.drop(["a"], NEVER_S))
    await asyncio.sleep(0)
    following = [asyncio.create_task(cache.drop([name], NEVER_S)) for name in ("b", "c")]
    await asyncio.sleep(0)
    leading.cancel()
    await asyncio.sleep(0)
    following[0].cancel()
    await asyncio.gather(leading, *following, return_exceptions=True)
    assert all(cache.owes([name]) for name in ("a", "b", "c"))


async def test_debts_are_bounded(lame: LameCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.adapters.wrappers.owing_cache.MAX_OWED", 3)
    cache = OwingCache(lame)
    cache.owe([f"n{number}" for number in range(5)])
    assert [cache.owes([f"n{number}"]) for number in range(5)] == [False, False, True, True, True]


async def test_while_a_tombstone_is_owed_nobody_vouches_and_nobody_is_believed(lame: LameCache) -> None:
    cache = OwingCache(lame)
    await cache.vouch(await cache.continuity(NEVER_S), NEVER_S)
    assert await cache.is_vouched(NEVER_S)
    lame.is_lame = True
    await cache.bury(["mem_1"], NEVER_S)
    assert cache.owes([], ["mem_1"])
    assert not cache.owes([], ["mem_2"])
    assert not await cache.is_vouched(NEVER_S)
    await cache.bury(["mem_1"], NEVER_S)
    assert cache.owes([], ["mem_1"])
    lame.is_lame = False
    await cache.pay()
    assert not cache.owes([], ["mem_1"])
    assert await cache.is_vouched(NEVER_S)


async def test_who_owes_tombstones_cannot_vouch(lame: LameCache) -> None:
    cache = OwingCache(lame)
    lame.is_lame = True
    await cache.bury(["mem_1"], NEVER_S)
    await cache.vouch(await cache.continuity(NEVER_S), NEVER_S)
    assert not await lame.is_vouched(NEVER_S)
