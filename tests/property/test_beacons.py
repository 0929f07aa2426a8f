"""Beacons of two data planes over stores whose calls fail at any moment, before or after their effect, or come late.

Whatever fails, and whoever is killed meanwhile: nobody raises an alarm where nothing was lost, and a loss is noticed by
the next look that gets through.
"""

import asyncio
import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.changes import IndexProgress
from dataplane.errors import BackendUnavailable
from dataplane.logic.beacon import MARKS
from dataplane.pipelines.beacons import BeaconOptions, BeaconParts, Beacons
from dataplane.pipelines.check_indexes import Counts
from dataplane.pipelines.index_care import CareParts, IndexCare
from dataplane.pipelines.lineage import Lineage, accept_restored
from dataplane.pipelines.reindex import RebuildEnd
from memplane.v1 import maintenance_service_pb2 as pb
from tests.contract.builders import fields_of

NODES = ("data-1", "data-2")
INDEXES = ("one", "two")
EMPTY = Counts(0, 0, IndexProgress("", 0, 0, 0, None), 0)
QUICK = BeaconOptions(interval_s=0.0)


class Failing:
    """Stands for a store; a call fails when the next of `fates` is 1 (before its effect), 2 (after it) or 3.

    3: it is stored later, when the next one is 4.
    """

    def __init__(self, inner: Any, fates: list[int], late: list[Callable[[], Any]]):
        self._inner = inner
        self._fates = fates
        self._late = late

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: Any) -> Any:
            fate = self._fates.pop() if self._fates else 0
            if fate == 3:
                self._late.append(lambda: getattr(self._inner, name)(*arguments))
            if fate in (1, 3):
                raise BackendUnavailable("a store", "fails")
            while fate == 4 and self._late:
                await self._late.pop()()
            answer = await getattr(self._inner, name)(*arguments)
            if fate == 2:
                raise BackendUnavailable("a store", "answers too late")
            return answer

        return call


@dataclass
class House:
    """Two data planes over one record store and two indexes."""

    store: InMemoryRecordStore = field(default_factory=lambda: InMemoryRecordStore(fields_of))
    indexes: dict[str, InMemoryTextIndex] = field(
        default_factory=lambda: {each: InMemoryTextIndex() for each in INDEXES}
    )
    witnesses: dict[str, tuple[int, int]] = field(default_factory=dict)
    planes: dict[str, Beacons] = field(default_factory=dict)
    fates: list[int] = field(default_factory=list)
    late: list[Callable[[], Any]] = field(default_factory=list)
    marks: int = 0

    def start(self, node: str) -> None:
        """Starts a data plane, in place of the one of before."""
        store = cast(InMemoryRecordStore, self.failing(self.store))
        care = CareParts(store, cast(Any, CHECKS), cast(Any, REPAIRS), node, 0.0)
        cares = [
            IndexCare(
                care,
                cast(
                    Any,
                    SimpleNamespace(name=name, index=self.failing(index), kind=pb.INDEX_KIND_TEXT),
                ),
                cast(Any, SimpleNamespace(is_level=True, retry_now=nothing, doubt=nothing, trust=nothing)),
            )
            for name, index in self.indexes.items()
        ]
        projectors = SimpleNamespace(newest=0, forget_past=nothing)
        witness = SimpleNamespace(
            read=lambda: self.witnesses.get(node, (0, 0)),
            write=lambda number, position: self.witnesses.update({node: (number, position)}),
        )
        parts = BeaconParts(store, cast(Any, None), cast(Any, projectors), Lineage(), witness, self.mark, node)
        self.planes[node] = Beacons(parts, cares, QUICK)
        self.planes[node]._returned = cast(Any, SimpleNamespace(start=nothing, count=0))

    def failing(self, store: Any) -> Failing:
        """A store as data planes reach it."""
        return Failing(store, self.fates, self.late)

    def mark(self) -> int:
        """A mark that none had before."""
        self.marks += 1
        return self.marks

    async def look(self, node: str, fates: list[int]) -> None:
        """One look, in which calls fail as told."""
        self.fates[:] = fates
        with suppress(BackendUnavailable):
            await self.planes[node].look()
        self.fates.clear()

    def alarms(self) -> set[str]:
        """The codes that anybody tells."""
        return {problem.code for each in self.planes.values() for told in each.problems.values() for problem in told}


def nothing(*_: Any) -> None:
    """Does nothing."""


async def _count(*_: Any) -> Counts:
    return EMPTY


async def _repair(*_: Any, **__: Any) -> str:
    return "operations/repair"


async def _ended(*_: Any) -> RebuildEnd:
    return RebuildEnd.BUILT


CHECKS = SimpleNamespace(count=_count)
REPAIRS = SimpleNamespace(repair=_repair, ended=_ended)
FATES = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4]), max_size=25)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.sampled_from(NODES), FATES),
        st.tuples(st.just("restart"), st.sampled_from(NODES), st.just([])),
        st.tuples(st.just("write"), st.just(""), st.just([])),
    ),
    max_size=25,
)


async def lived(steps: list[tuple[str, str, list[int]]]) -> House:
    """A house after these steps, and two calm looks of everybody."""
    house = House()
    for node in NODES:
        house.start(node)
    for what, node, fates in steps:
        if what == "look":
            await house.look(node, fates)
        elif what == "restart":
            house.start(node)
        else:
            house.store._tables.last_position += 1
    for _ in range(2):
        for node in NODES:
            await house.look(node, [])
    return house


@settings(max_examples=30)
@given(STEPS)
def test_whatever_fails_nobody_raises_a_false_alarm(steps: list[tuple[str, str, list[int]]]) -> None:
    house = asyncio.run(lived(steps))
    assert house.alarms() == set()


@settings(max_examples=20)
@given(STEPS, st.sampled_from(INDEXES), st.sampled_from(NODES), st.booleans())
def test_a_wiped_index_is_noticed_by_the_next_look(
    steps: list[tuple[str, str, list[int]]], index: str, node: str, is_new: bool
) -> None:
    async def run() -> set[str]:
        house = await lived(steps)
        await house.indexes[index].clear(asyncio.get_running_loop().time() + 10)
        if is_new:
            house.start(node)
        await house.look(node, [])
        return house.alarms()

    assert asyncio.run(run()) == {"INDEX_WIPED"}


@settings(max_examples=20)
@given(STEPS, st.sampled_from(NODES), st.booleans(), st.booleans())
def test_a_restored_record_store_is_said_until_it_is_accepted(
    steps: list[tuple[str, str, list[int]]], node: str, is_new: bool, has_folder: bool
) -> None:
    async def run() -> tuple[set[str], set[str]]:
        house = await lived(steps)
        backup = copy.deepcopy(house.store._tables)
        house.store._tables.last_position += 1
        for each in NODES:
            await house.look(each, [])
        house.store._tables = backup
        if is_new:
            house.start(node)
            house.witnesses = house.witnesses if has_folder else {}
        await house.look(node, [])
        told = house.alarms()
        await accept_restored(house.store, asyncio.get_running_loop().time() + 10)
        for each in NODES * 4:
            await house.look(each, [])
        return told, house.alarms()

    assert asyncio.run(run()) == ({"RECORD_STORE_RESTORED"}, set())


async def test_a_beacon_that_is_stored_late_after_its_save_was_given_up_is_no_other_past() -> None:
    house, late = House(), list[int]()
    save = house.store.raise_marker

    async def give_up(name: str, value: int, unit: int, deadline_s: float) -> int:
        if name != f"beacon:{NODES[0]}" or late:
            return await save(name, value, unit, deadline_s)
        late.append(value)
        raise BackendUnavailable("record_store", "does not answer in time")

    house.store.raise_marker = give_up  # type: ignore[method-assign]  # once
    house.store._tables.last_position += 1
    house.start(NODES[0])
    for _ in range(2):
        await house.look(NODES[0], [])
    await save(f"beacon:{NODES[0]}", late[0], MARKS, asyncio.get_running_loop().time() + 10)
    await house.look(NODES[0], [])
    house.start(NODES[1])
    await house.look(NODES[1], [])
    assert house.alarms() == set()
