"""While the record store cannot decide, a write is queued, and is stored once whenever the store fell. About 1 s."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dataplane.changes import Commit, Erasure
from dataplane.codec import fields_of, parse_body
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope
from dataplane.pipelines import enqueue, write_or_queue
from dataplane.pipelines.enqueue import Proposal
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.write import Outcome
from dataplane.pipelines.write_or_queue import WriteOrQueue
from dataplane.ports import CommitResult
from dataplane.server.requests import read_draft
from memplane.errors import InvalidField, MemPlaneError, Overloaded, PermissionDenied, RequestIdReused, Unavailable
from memplane.policy.model import WritePolicy
from memplane.process import SystemClock
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.dataplane.pipelines.queue_rig import (
    NOBODY,
    FlakyStore,
    Rig,
    in_time,
    memory_rig,
    response_of,
    rig_over,
    running,
    snapshot_of,
    with_rights,
)

QUEUED = memory_pb2.DECISION_ACTION_QUEUED


class FallingStore(FlakyStore):
    """Falls at its next commits: before they are stored, or after; `calls` counts commits that were tried."""

    falls: str = ""
    calls = 0

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        self.calls += 1
        if self.falls == "before":
            raise BackendUnavailable("record_store", "fell")
        results = await super().commit(commits, deadline_s)
        if self.falls == "after":
            raise BackendUnavailable("record_store", "fell")
        return results


@pytest.fixture
def rig() -> Rig:
    made = memory_rig()
    return rig_over(made.queue, FallingStore(fields_of))


def proposal_of(content: str, **fields: Any) -> Proposal:
    request = pb.WriteMemoryRequest(**{"namespace": "dept.sales", "content": content, **fields})
    return Proposal(request, read_draft(request, SystemClock().now_us(), 384))


async def write(rig: Rig, content: str, **fields: Any) -> pb.WriteMemoryResponse:
    settled = await rig.write_or_queue.write(proposal_of(content, **fields), rig.caller(), in_time())
    return settled.response


async def write_all(rig: Rig, *given: Proposal | MemPlaneError) -> list[Outcome]:
    return await rig.write_or_queue.write_batch(given, rig.caller(), in_time())


async def waiting(rig: Rig) -> int:
    return (await rig.queue.depth(in_time())).waiting


def settled_of(response: pb.WriteMemoryResponse) -> Settled:
    return Settled(response, 0)


async def test_the_answer_names_the_operation_and_what_was_done_instead(rig: Rig) -> None:
    rig.store.is_down = True
    response = await write(rig, "Note")
    assert response.decision.action == QUEUED
    assert response.operation.name
    assert not response.HasField("memory")
    [note] = response.degraded
    assert (note.backend, note.reason) == ("record_store", "BACKEND_UNAVAILABLE")
    assert "queue" in note.fallback
    rig.store.is_down = False
    async with running(rig.consumer()):
        told = response_of(await rig.ended(settled_of(response)))
    assert [memory.memory_id for memory in await rig.memories()] == [told.memory.id]


@pytest.mark.parametrize("request_id", ["", "r1"])
@pytest.mark.parametrize("falls", ["before", "after"])
async def test_whenever_the_store_falls_the_write_is_stored_once(rig: Rig, falls: str, request_id: str) -> None:
    rig.store.falls = falls
    response = await write(rig, "Note", request_id=request_id)
    assert response.decision.action == QUEUED
    rig.store.falls = ""
    async with running(rig.consumer()):
        told = response_of(await rig.ended(settled_of(response)))
    [memory] = await rig.memories()
    assert (memory.memory_id, memory.version, memory.strength) == (told.memory.id, 1, memory.strength)
    assert told.decision.action == memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM
    assert await rig.contents() == ["Note"]


async def test_a_commit_that_comes_through_after_the_queued_write_is_refused(rig: Rig) -> None:
    """The server went on with what its caller gave up."""
    late: list[tuple[Sequence[Commit], float]] = []
    commit = rig.store.commit

    async def hang(commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        late.append((commits, deadline_s))
        raise BackendUnavailable("record_store", "no answer in time")

    rig.store.commit = hang
    response = await write(rig, "Note")
    rig.store.commit = commit
    async with running(rig.consumer()):
        await rig.ended(settled_of(response))
    [[result]] = [await commit(*call) for call in late]
    assert result.error is not None
    assert await rig.contents() == ["Note"]


async def test_what_was_stored_after_all_and_forgotten_since_does_not_come_back(rig: Rig) -> None:
    rig.store.falls = "after"
    response = await write(rig, "Note")
    rig.store.falls = ""
    [memory] = await rig.memories()
    await rig.store.erase(
        Erasure(scope=Scope(("dept.sales",)), memory_id=memory.memory_id, now_us=1, principal_id="agent"), in_time()
    )
    async with running(rig.consumer()):
        told = response_of(await rig.ended(settled_of(response)))
    assert [reason.code for reason in told.decision.reasons] == ["FORGOTTEN"]
    assert await rig.memories() == []


async def test_asking_again_leads_to_the_same_operation_and_to_the_first_outcome(rig: Rig) -> None:
    rig.store.is_down = True
    first = await write(rig, "Note", request_id="r1")
    again = await write(rig, "Note", request_id="r1")
    assert again.operation.name == first.operation.name
    elsewhere = WriteOrQueue(rig.write, rig.enqueue, str)
    there = await elsewhere.write(proposal_of("Note", request_id="r1"), rig.caller(), in_time())
    assert there.response.operation.name == first.operation.name
    with pytest.raises(RequestIdReused):
        await write(rig, "Another", request_id="r1")
    assert await waiting(rig) == 1
    rig.store.is_down = False
    third = WriteOrQueue(rig.write, rig.enqueue, str)
    decided = await third.write(proposal_of("Note", request_id="r1"), rig.caller(), in_time())
    async with running(rig.consumer()):
        told = response_of(await rig.ended(settled_of(first)))
    assert told.memory.id == decided.response.memory.id
    assert await rig.contents() == ["Note"]


async def test_each_of_several_is_decided_or_queued_by_itself(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.pipelines.write.SETTLED_TOGETHER", 2)
    refused = InvalidField.one("content", "is missing")
    given = [proposal_of(f"Note {number}") for number in range(5)]
    commit = rig.store.commit

    async def fall_then(commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        results: list[CommitResult] = await commit(commits, deadline_s)
        rig.store.falls = "before"
        return results

    rig.store.commit = fall_then
    outcomes = await write_all(rig, given[0], given[1], refused, *given[2:])
    assert outcomes[2] is refused
    answers = [outcome.response for outcome in outcomes if isinstance(outcome, Settled)]
    assert [bool(answer.memory.id) for answer in answers] == [True, True, False, False, False]
    assert [answer.decision.action == QUEUED for answer in answers] == [False, False, True, True, True]
    rig.store.falls, rig.store.commit = "", commit
    async with running(rig.consumer()):
        for answer in answers[2:]:
            await rig.ended(settled_of(answer))
    assert await rig.contents() == [f"Note {number}" for number in range(5)]


async def test_a_trial_is_never_queued(rig: Rig) -> None:
    rig.store.is_down = True
    with pytest.raises(Unavailable):
        await write(rig, "Note", validate_only=True, request_id="r1")
    assert await waiting(rig) == 0


async def test_what_may_not_be_written_is_not_queued(rig: Rig) -> None:
    rig.store.is_down = True
    with pytest.raises(PermissionDenied):
        await write(rig, "Note", namespace="elsewhere", request_id="r1")
    rig.snapshot = snapshot_of(WritePolicy(max_content_bytes=10))
    with pytest.raises(InvalidField, match="max_content_bytes"):
        await write(rig, "A note of more than ten bytes", request_id="r1")
    with_rights(rig, agent=NOBODY)
    with pytest.raises(PermissionDenied):
        await write(rig, "Note")
    assert await waiting(rig) == 0


async def test_who_may_not_write_does_not_learn_by_waiting_that_a_subject_has_a_write_in_the_queue(rig: Rig) -> None:
    rig.store.is_down = True
    await write(rig, "Prefers tea", subject_id="42")
    rig.store.is_down = False
    asked = list[str]()

    async def note(name: str, _value: int, _deadline_s: float) -> None:
        asked.append(name)

    rig.store.save_marker = note
    with_rights(rig, agent=NOBODY)
    with pytest.raises(PermissionDenied):
        await write(rig, "Prefers coffee", subject_id="42")
    assert asked == []


async def test_a_full_queue_says_when_to_come_again() -> None:
    rig = memory_rig(max_entries=1)
    rig.store.is_down = True
    await write(rig, "Note")
    with pytest.raises(Overloaded, match="record_store is unavailable and the queue") as raised:
        await write(rig, "Another")
    assert raised.value.retry_after_s > 0


async def test_with_the_queue_down_too_it_is_unavailable(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fall(*_: object) -> None:
        raise BackendUnavailable("queue", "down")

    rig.store.is_down = True
    monkeypatch.setattr(rig.queue, "put", fall)
    with pytest.raises(Unavailable, match="record_store") as raised:
        await write(rig, "Note")
    assert raised.value.retry_after_s > 0


async def test_without_a_queue_it_is_unavailable_and_no_id_is_made_up(rig: Rig) -> None:
    alone = WriteOrQueue(rig.write, None, str)
    await alone.write(proposal_of("Note"), rig.caller(), in_time())
    assert rig.store._tables.requests == {}
    rig.store.is_down = True
    with pytest.raises(Unavailable):
        await alone.write(proposal_of("Another"), rig.caller(), in_time())


async def test_a_store_that_hangs_leaves_time_for_the_queue(rig: Rig) -> None:
    async def hang(_commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        try:
            async with asyncio.timeout_at(deadline_s):
                await asyncio.Event().wait()
        except TimeoutError:
            raise BackendUnavailable("record_store", "deadline passed") from None
        raise AssertionError

    rig.store.commit = hang
    until_s = asyncio.get_running_loop().time() + 0.4
    settled = await rig.write_or_queue.write(proposal_of("Note"), rig.caller(), until_s)
    assert settled.response.decision.action == QUEUED
    assert asyncio.get_running_loop().time() < until_s


async def test_what_is_said_later_of_a_subject_waits_for_what_was_said_before(rig: Rig) -> None:
    rig.store.is_down = True
    await write(rig, "Prefers tea", subject_id="42", fact_key="user:42/drink")
    again = await write(rig, "Prefers milk", subject_id="42", fact_key="user:42/drink")
    assert again.operation.name
    rig.store.is_down = False
    late = asyncio.create_task(write(rig, "Prefers coffee", subject_id="42", fact_key="user:42/drink"))
    other = await write(rig, "Prefers tea", subject_id="43", fact_key="user:43/drink")
    assert (other.operation.name, late.done()) == ("", False)
    async with running(rig.consumer()):
        assert (await late).memory.content == "Prefers coffee"
    fact = await rig.store.find_fact(Scope(("dept.sales",)), "42", "user:42/drink", in_time())
    assert parse_body(fact).content == "Prefers coffee"


async def test_what_would_wait_too_long_is_queued_behind(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_or_queue, "PATIENCE_S", 0.05)
    rig.store.is_down = True
    early = await write(rig, "Prefers tea", subject_id="42", fact_key="user:42/drink")
    rig.store.is_down = False
    late = await write(rig, "Prefers coffee", subject_id="42", fact_key="user:42/drink")
    assert late.decision.action == QUEUED
    assert "behind" in late.degraded[0].fallback
    async with running(rig.consumer()):
        await rig.ended(settled_of(early))
        await rig.ended(settled_of(late))
    fact = await rig.store.find_fact(Scope(("dept.sales",)), "42", "user:42/drink", in_time())
    assert parse_body(fact).content == "Prefers coffee"
    after = await write(rig, "Prefers water", subject_id="42", fact_key="user:42/drink")
    assert (after.memory.content, after.operation.name) == ("Prefers water", "")


async def test_a_write_behind_others_does_not_wait_for_a_store_that_says_nothing(rig: Rig) -> None:
    rig.store.is_down = True
    await write(rig, "Prefers tea", subject_id="42")
    now_s, asked = asyncio.get_running_loop().time, list[float]()

    async def hang(_name: str, _value: int, deadline_s: float) -> None:
        asked.append(deadline_s - now_s())
        raise BackendUnavailable("record_store", "deadline passed")

    rig.store.save_marker = hang
    late = await write(rig, "Prefers coffee", subject_id="42")
    assert late.decision.action == QUEUED
    assert [round(seconds, 1) for seconds in asked] == [enqueue.LOOK_S]


async def test_under_load_writes_are_decided_at_once_again_soon_after_an_outage(rig: Rig) -> None:
    """All of one subject: those that come in while the queue is emptied do not fill it again."""
    rig.store.is_down = True
    for number in range(20):
        await write(rig, f"Early {number}")
    rig.store.is_down = False
    queued = 0

    async def call(caller: int) -> None:
        nonlocal queued
        for number in range(10):
            queued += bool((await write(rig, f"Late {caller}-{number}")).operation.name)

    async with running(rig.consumer()):
        await asyncio.gather(*(call(caller) for caller in range(8)))
    assert queued == 0
    assert len(await rig.contents()) == 100


async def test_only_the_latest_subjects_are_remembered(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_or_queue, "MOST_SUBJECTS", 2)
    monkeypatch.setattr(write_or_queue, "PATIENCE_S", 0.0)
    rig.store.is_down = True
    for subject_id in ("a", "b", "c"):
        await write(rig, "Note", subject_id=subject_id)
    rig.store.is_down = False
    answers = [await write(rig, "More", subject_id=subject_id) for subject_id in ("a", "b", "c")]
    assert [bool(answer.operation.name) for answer in answers] == [False, True, True]


async def test_what_a_batch_says_last_of_a_subject_is_true_after_an_outage_of_a_moment(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataplane.pipelines.write.EMBEDDED_TOGETHER", 1)
    cities = ["Rome", "Oslo", "Bern"]
    given = [proposal_of(f"Acme sits in {city}", subject_id="acme", fact_key="acme:city") for city in cities]
    save = rig.store.commit
    falls = iter([True])

    async def commit(*arguments: Any) -> list[CommitResult]:
        if next(falls, False):
            raise BackendUnavailable("record_store", "fell")
        return list(await save(*arguments))

    monkeypatch.setattr(rig.store, "commit", commit)
    outcomes = await rig.write_or_queue.write_batch(given, rig.caller(), in_time())
    settled = [outcome for outcome in outcomes if isinstance(outcome, Settled)]
    assert [each.response.decision.action for each in settled] == [QUEUED] * 3
    async with running(rig.consumer()):
        for each in settled:
            await rig.ended(each)
    current = [each for each in await rig.memories() if each.state.name == "ACTIVE"]
    assert [parse_body(each).content for each in current] == ["Acme sits in Bern"]
