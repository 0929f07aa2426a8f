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


async def test_debts_are_bounded(lame: LameCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.adapters.wrappers.owing_cache.MAX_OWED", 3)
    cache = OwingCache(lame)
    cache.owe([f"n{number}" for number in range(5)])
    assert [cache.owes([f"n{number}"]) for number in range(5)] == [False, False, True, True, True]
