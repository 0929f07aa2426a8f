"""Queued writes are applied once each, in order, whatever fails on the way. Takes about 3 s."""

import asyncio
from collections.abc import Sequence

import pytest
from google.rpc import code_pb2

from dataplane.changes import QueuedWrite, QueueEntry
from dataplane.errors import BackendUnavailable
from dataplane.model import Draft
from dataplane.pipelines import apply
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.write import Outcome, WritePipeline
from memplane.errors import MemPlaneError, Unavailable
from memplane.v1 import memory_pb2
from tests.deadline import eventually, eventually_async
from tests.unit.dataplane.pipelines.queue_rig import (
    NOBODY,
    Rig,
    in_time,
    memory_rig,
    response_of,
    running,
    with_rights,
)


@pytest.fixture
def rig() -> Rig:
    return memory_rig()


class Breaking:
    """A writer that fails by a defect whenever a draft says "poison"; it counts the batches."""

    def __init__(self, within: WritePipeline) -> None:
        self._within = within
        self.batches: list[int] = []

    async def write_batch(
        self, drafts: Sequence[Draft | MemPlaneError], caller: Caller, deadline_s: float
    ) -> list[Outcome]:
        self.batches.append(len(drafts))
        if any(isinstance(draft, Draft) and "poison" in draft.content for draft in drafts):
            raise ZeroDivisionError("a defect")
        return await self._within.write_batch(drafts, caller, deadline_s)


class Hesitating:
    """A writer that cannot decide one content for a while."""

    def __init__(self, within: WritePipeline, content: str) -> None:
        self._within = within
        self._content = content
        self.hesitations = 3

    async def write_batch(
        self, drafts: Sequence[Draft | MemPlaneError], caller: Caller, deadline_s: float
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for draft in drafts:
            if self.hesitations and isinstance(draft, Draft) and draft.content == self._content:
                self.hesitations -= 1
                outcomes.append(Unavailable("record_store"))
            else:
                outcomes += await self._within.write_batch([draft], caller, deadline_s)
        return outcomes


async def is_empty(rig: Rig) -> bool:
    depth = await rig.queue.depth(in_time())
    return depth.waiting == depth.taken == 0


async def test_a_queued_write_is_stored_and_its_operation_tells_which_memory_it_is(rig: Rig) -> None:
    accepted = await rig.put("Acme renews in March", subject_id="acme")
    async with running(rig.consumer()):
        operation = await rig.ended(accepted)
    told = response_of(operation)
    [memory] = await rig.memories()
    assert told.decision.action == memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM
    assert (told.memory.id, told.memory.version) == (memory.memory_id, 1)
    assert told.consistency_token
    assert told.policy_version == "sha256:1"
    assert "Acme renews" not in str(operation)
    assert await is_empty(rig)


async def test_a_write_that_is_handed_out_again_after_its_commit_has_one_effect(rig: Rig) -> None:
    rig = memory_rig(claim_after_s=0.05)
    accepted = await rig.put("Acme renews in March")
    [entry] = await rig.queue.take("killed", 10, 0, in_time())
    draft = rig.form.draft(entry.write)
    first = await rig.write.write(draft, rig.caller(), in_time())  # committed, and then the process was killed
    async with running(rig.consumer()):
        told = response_of(await rig.ended(accepted))
    assert told.memory.id == first.response.memory.id
    [memory] = await rig.memories()
    assert memory.version == 1


async def test_a_result_that_could_not_be_stored_is_stored_later(rig: Rig) -> None:
    rig.store.failing_saves = 2
    accepted = await rig.put("Acme renews in March")
    async with running(rig.consumer()):
        assert response_of(await rig.ended(accepted)).decision.action == memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM
    assert len(await rig.memories()) == 1


async def test_writes_wait_while_the_record_store_is_down(rig: Rig) -> None:
    accepted = [await rig.put(f"Note {number}") for number in range(5)]
    rig.store.is_down = True
    consumer = rig.consumer()
    async with running(consumer):
        await eventually(lambda: consumer.failed_turns, lambda count: count >= 3)
        assert (await rig.queue.depth(in_time())).waiting == 5
        rig.store.is_down = False
        for each in accepted:
            await rig.ended(each)
    assert await rig.contents() == [f"Note {number}" for number in range(5)]


async def test_a_batch_in_hand_when_the_record_store_goes_down_stays_there(rig: Rig) -> None:
    rig = memory_rig(claim_after_s=0.2)
    accepted = await rig.put("Note")
    rig.store.failing_saves = 10_000
    consumer = rig.consumer()
    async with running(consumer):
        await eventually(lambda: consumer.failed_turns, lambda count: count >= 25)
        assert await rig.queue.take("another", 10, 0, in_time()) == []
        rig.store.failing_saves = 0
        await rig.ended(accepted)
    assert await is_empty(rig)


async def test_a_permission_that_has_gone_ends_the_operation_with_that_error(rig: Rig) -> None:
    accepted = await rig.put("Note")
    with_rights(rig, agent=NOBODY)
    async with running(rig.consumer()):
        operation = await rig.ended(accepted)
    assert operation.error.code == code_pb2.PERMISSION_DENIED
    assert await rig.memories() == []
    assert await is_empty(rig)


async def test_what_is_no_request_ends_with_an_error_and_stops_nothing(rig: Rig) -> None:
    garbage = QueuedWrite("operations/garbage", "agent", "dept.sales", b"\xff\xff\x01", 1, "dept.sales ")
    await rig.queue.put(garbage, in_time())
    accepted = await rig.put("Note")
    async with running(rig.consumer()):
        await rig.ended(accepted)
        operation = await rig.operation("operations/garbage")
    assert operation.error.code == code_pb2.INVALID_ARGUMENT


async def test_a_write_that_keeps_failing_is_set_aside_and_the_others_are_applied(rig: Rig) -> None:
    poisoned = await rig.put("poison")
    accepted = [await rig.put(f"Note {number}") for number in range(3)]
    async with running(rig.consumer(write=Breaking(rig.write))):
        operation = await rig.ended(poisoned)
        for each in accepted:
            await rig.ended(each)
    assert operation.error.code == code_pb2.INTERNAL
    assert "ZeroDivision" not in str(operation)
    assert (await rig.queue.depth(in_time())).set_aside == 1
    assert len(await rig.memories()) == 3


async def test_writes_that_were_handed_out_often_are_applied_one_at_a_time() -> None:
    rig = memory_rig(claim_after_s=0.01)
    accepted = [await rig.put(f"Note {number}") for number in range(3)]
    await hand_out(rig, apply.SUSPECT_DELIVERIES)
    writer = Breaking(rig.write)
    async with running(rig.consumer(write=writer)):
        for each in accepted:
            await rig.ended(each)
    assert set(writer.batches) == {1}


async def test_a_write_that_ends_every_process_is_set_aside_untried() -> None:
    rig = memory_rig(claim_after_s=0.01)
    accepted = [await rig.put(content) for content in ("kills", "Note")]
    await hand_out(rig, apply.MOST_DELIVERIES)
    async with running(rig.consumer()):
        killer, note = [await rig.ended(each) for each in accepted]
    assert killer.error.code == code_pb2.INTERNAL
    assert response_of(note).memory.id
    assert await rig.contents() == ["Note"]


async def hand_out(rig: Rig, times: int) -> None:
    """Takers take all and die."""
    for number in range(times - 1):

        async def take(owner: str = f"dead {number}") -> list[QueueEntry]:
            return await rig.queue.take(owner, 10, 0, in_time())

        await eventually_async(take, bool)


async def test_the_last_statement_of_a_fact_stands_with_two_consumers_at_work() -> None:
    rig = memory_rig()
    last = ""
    for number in range(24):
        last = f"The limit of account {number % 4} is {number}"
        await rig.put(last, subject_id=f"s{number % 4}", fact_key=f"s{number % 4}/limit")
    async with running(rig.consumer("one"), rig.consumer("two")):
        await eventually_async(lambda: is_empty(rig), bool)
    contents = await rig.contents()
    assert contents == [f"The limit of account {number % 4} is {number}" for number in (20, 21, 22, 23)]


@pytest.mark.parametrize("deliveries", [1, apply.SUSPECT_DELIVERIES], ids=["a batch", "one at a time"])
async def test_a_statement_does_not_pass_an_earlier_one_of_its_fact_that_must_wait(deliveries: int) -> None:
    rig = memory_rig(claim_after_s=0.05)
    for number in range(3):
        await rig.put(f"The limit is {number}", subject_id="s", fact_key="s/limit")
    await hand_out(rig, deliveries)
    writer = Hesitating(rig.write, "The limit is 1")
    async with running(rig.consumer(write=writer)):
        await eventually_async(lambda: is_empty(rig), bool)
    assert writer.hesitations == 0
    assert await rig.contents() == ["The limit is 2"]


async def test_principals_of_one_subject_keep_their_order(rig: Rig) -> None:
    for number, principal_id in enumerate(["agent", "other", "agent", "other", "agent"]):
        await rig.put(f"The limit is {number}", principal_id, subject_id="s", fact_key="s/limit")
    async with running(rig.consumer()):
        await eventually_async(lambda: is_empty(rig), bool)
    assert await rig.contents() == ["The limit is 4"]


async def test_writes_wait_for_a_policy(rig: Rig) -> None:
    accepted = await rig.put("Note")
    rig.snapshot, known = None, rig.snapshot
    consumer = rig.consumer()
    async with running(consumer):
        await eventually(lambda: consumer.failed_turns, lambda count: count >= 3)
        rig.snapshot = known
        await rig.ended(accepted)


async def test_stopping_finishes_the_batch_in_hand(rig: Rig) -> None:
    await rig.put("Note")
    consumer = rig.consumer()
    consumer.start()
    await eventually_async(lambda: rig.queue.depth(in_time()), lambda depth: depth.waiting == 0)
    await consumer.stop()
    await consumer.stop()
    assert await rig.contents() == ["Note"]
    assert await is_empty(rig)


async def test_stopping_leaves_to_others_what_cannot_be_finished() -> None:
    rig = memory_rig(claim_after_s=0.05)
    accepted = await rig.put("Note")
    consumer = rig.consumer()
    rig.store.failing_saves = 10_000
    consumer.start()
    await eventually(lambda: consumer.failed_turns, bool)
    await consumer.stop()
    rig.store.failing_saves = 0
    async with running(rig.consumer("two")):
        await rig.ended(accepted)
    assert len(await rig.memories()) == 1


async def test_a_queue_that_fails_is_asked_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    take, failures = rig.queue.take, iter([BackendUnavailable("queue"), ZeroDivisionError()])

    async def failing(owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        if (error := next(failures, None)) is not None:
            raise error
        return await take(owner, page_size, wait_s, deadline_s)

    monkeypatch.setattr(rig.queue, "take", failing)
    accepted = await rig.put("Note")
    consumer = rig.consumer()
    async with running(consumer):
        await rig.ended(accepted)
    assert consumer.failed_turns == 2


async def test_a_consumer_that_never_started_stops(rig: Rig) -> None:
    await asyncio.wait_for(rig.consumer().stop(), 1)
