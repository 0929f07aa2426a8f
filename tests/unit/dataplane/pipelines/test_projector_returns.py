"""What a projector does when its index comes back, may have lost what it took, or the record store has another past."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.model import IndexEntry
from tests.contract.builders import fields_of
from tests.deadline import eventually, eventually_async
from tests.unit.dataplane.pipelines.test_projector import (
    OPTIONS,
    ScriptedIndex,
    following,
    in_index,
    projection,
    put,
    reads,
    waiting,
)

SLOW = replace(OPTIONS, backoff_s=3_600.0, max_backoff_s=3_600.0)


class HangingIndex(ScriptedIndex):
    """Does not answer its first upsert; `asked` says that it came."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.Event().wait()
        await super().upsert(entries, deadline_s)


async def test_no_back_off_is_waited_out_once_the_index_is_back() -> None:
    store, index = InMemoryRecordStore(fields_of), ScriptedIndex()
    async with following(store, projection(index), SLOW) as projector:
        await projector.wait_level(5)
        index.down = True
        await put(store, "mem_1")
        projector.wake()
        await eventually(lambda: projector.last_error, bool)
        index.down = False
        projector.retry_now()
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])


async def test_a_call_that_hangs_is_given_up_once_the_index_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.pipelines.projector.HANG_S", 0.0)
    store, index = InMemoryRecordStore(fields_of), HangingIndex()
    async with following(store, projection(index), replace(OPTIONS, lease_s=3_600.0)) as projector:
        await projector.wait_level(5)
        await put(store, "mem_1")
        projector.wake()
        await index.asked.wait()
        projector.retry_now()
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])


async def test_what_was_not_settled_when_the_index_was_lost_is_applied_again() -> None:
    store, index = InMemoryRecordStore(fields_of), ScriptedIndex()
    on_server = projection(index, own=False, flush_interval_s=3_600.0)
    async with following(store, on_server, OPTIONS) as projector:
        await put(store, "mem_1")
        projector.wake()
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
        assert (await waiting(store))[0] == 1
        index._entries.clear()
        projector.doubt()
        assert not projector.is_level
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
        projector.trust()
        assert projector.is_level


async def test_positions_of_a_past_that_is_gone_are_not_relied_on() -> None:
    store, index = InMemoryRecordStore(fields_of), ScriptedIndex()
    async with following(store, projection(index), OPTIONS) as projector:
        position = await put(store, "mem_1", "mem_2")
        projector.wake()
        await eventually(lambda: projector.position, lambda reached: reached >= position)
        store._tables.last_position = 1
        projector.wake()
        await eventually(lambda: projector.position, lambda reached: reached == 1)
        assert not projector.has_delivered("mem_2", position)
