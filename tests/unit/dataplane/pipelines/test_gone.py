"""Beacons of data planes that are gone are removed; nobody's who runs, and none by a store's old times."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.errors import BackendUnavailable
from dataplane.pipelines import gone
from dataplane.pipelines.gone import GONE_S, GonePlanes
from tests.contract.builders import fields_of

NOW_US = 1_760_000_000_000_000
DAY_US = 86_400_000_000


class House:
    """A record store whose clock is set by hand, an index, and data planes that may be asked to look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gone, "STAMP_S", 0.0)
        self.now_us = NOW_US
        clock = SimpleNamespace(now_us=lambda: self.now_us)
        self.store = InMemoryRecordStore(fields_of, cast(Any, clock))
        self.index = InMemoryTextIndex()
        self.cares = [SimpleNamespace(heard=None, index=SimpleNamespace(index=self.index, name="text_index:t"))]

    def plane(self, node: str) -> GonePlanes:
        return GonePlanes(self.store, cast(Any, self.cares), node, soon)

    async def light(self, node: str) -> None:
        """What a data plane leaves in the stores."""
        await self.store.save_marker(f"beacon:{node}", 7, soon())
        await self.store.save_marker(f"beacon:{node}:text_index:t", 7, soon())
        await self.index.save_beacon(node, 7, soon())

    async def look(self, *planes: GonePlanes, era: int = 0) -> set[str]:
        """Everybody looks; the names that the index has then."""
        for plane in planes:
            self.cares[0].heard = await self.index.beacons(soon())
            await plane.look(era)
        return set(await self.index.beacons(soon()))


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> House:
    made = House(monkeypatch)
    for node in ("stays", "leaves"):
        await made.light(node)
    return made


async def test_a_data_plane_that_is_not_heard_of_leaves_the_indexes_and_one_that_runs_does_not(house: House) -> None:
    stays, leaves = house.plane("stays"), house.plane("leaves")
    assert await house.look(stays, leaves) == {"stays", "leaves"}
    house.now_us += 29 * DAY_US
    assert await house.look(stays) == {"stays", "leaves"}
    house.now_us += 2 * DAY_US
    assert await house.look(stays) == {"stays"}
    assert await house.store.marker("beacon:leaves:text_index:t", soon()) == 0
    assert await house.store.marker("heard:leaves", soon()) == 0
    assert await house.store.marker("beacon:leaves", soon()) == 7  # else it would look like a restored record store
    assert await house.store.marker("beacon:stays:text_index:t", soon()) == 7


async def test_one_of_whom_nothing_but_a_beacon_is_known_has_the_whole_time(house: House) -> None:
    stays = house.plane("stays")
    await house.look(stays)
    house.now_us += 31 * DAY_US
    assert await house.look(stays) == {"stays", "leaves"}
    house.now_us += 31 * DAY_US
    assert await house.look(stays) == {"stays"}


async def test_a_record_store_with_old_times_removes_nobody_who_runs(house: House) -> None:
    stays, other = house.plane("stays"), house.plane("leaves")
    await house.look(stays, other)
    house.now_us += int((GONE_S + 1) * 1e6)  # as if the times were of a backup
    assert await house.look(stays, other, stays, era=1) == {"stays", "leaves"}


async def test_nobody_is_forgotten_before_every_index_answers(house: House) -> None:
    stays, leaves = house.plane("stays"), house.plane("leaves")
    await house.look(stays, leaves)
    house.now_us += 31 * DAY_US
    house.cares[0].heard = None
    await stays.look(0)
    assert await house.store.marker("heard:leaves", soon()) > 0
    assert set(await house.index.beacons(soon())) == {"stays", "leaves"}
    assert await house.look(stays) == {"stays"}


async def test_an_index_that_fails_meanwhile_is_tried_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise BackendUnavailable("text_index")

    stays, leaves = house.plane("stays"), house.plane("leaves")
    await house.look(stays, leaves)
    house.now_us += 31 * DAY_US
    with monkeypatch.context() as broken:
        broken.setattr(house.index, "save_beacon", fail)
        with pytest.raises(BackendUnavailable):
            await house.look(stays)
    assert await house.look(stays) == {"stays"}
