"""What counts as the same statement, what a repeat adds, and facts whose time is over or not yet come."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from memplane.policy.access import hash_api_key
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import NOW_US, Plane, as_user, contents, running_plane, search, write

WRITER_KEY = "mpk_00000003_writes-but-reads-nothing"
POLICY = {
    "write_policy": {"threshold": 0.0, "short_term_threshold": 0.0},
    "rbac": {
        "roles": {"writer": {"grants": [{"namespace": "dept.sales", "permissions": ["memory.write"]}]}},
        "principals": {"writer": {"api_key_sha256": [hash_api_key(WRITER_KEY)], "roles": ["writer"]}},
    },
}
MERGED, CREATED = memory_pb2.DECISION_ACTION_MERGED, memory_pb2.DECISION_ACTION_CREATED
HUMAN = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_HUMAN)
LLM = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_LLM)
USER = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_USER)


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(policy=POLICY) as running:
        yield running


def day(year: int, month: int = 1, number: int = 1) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(datetime(year, month, number, tzinfo=UTC))
    return stamp


async def active(plane: Plane, namespace: str = "dept.sales") -> list[memory_pb2.Memory]:
    listed = await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace=namespace), metadata=as_user())
    return list(listed.memories)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"speaker": "Ann"}, {"speaker": "Bob"}),
        ({"kind": 3, "event_time": day(2025, 1, 5)}, {"kind": 3, "event_time": day(2025, 3, 9)}),
        ({"fact_key": "ann/diet"}, {"fact_key": "bob/diet"}),
        ({"layer_hint": 1, "session_id": "s1"}, {"layer_hint": 1, "session_id": "s2"}),
        ({"subject_id": "ann"}, {"subject_id": "bob"}),
        ({"kind": 1}, {"kind": 2}),
    ],
    ids=["speaker", "episode's time", "fact key", "session of working memory", "subject", "kind"],
)
async def test_the_same_words_are_another_statement(
    plane: Plane, first: dict[str, Any], second: dict[str, Any]
) -> None:
    one = await write(plane, "I am vegetarian", **first)
    other = await write(plane, "I am vegetarian", **second)
    assert other.decision.action != MERGED
    assert one.memory.id != other.memory.id
    assert len(await active(plane)) == 2


async def test_a_key_that_comes_later_is_attached_and_then_corrected(plane: Plane) -> None:
    first = await write(plane, "Bob drinks coffee")
    keyed = await write(plane, "Bob drinks coffee", fact_key="bob/drink")
    assert (keyed.memory.id, keyed.memory.fact_key, keyed.decision.action) == (first.memory.id, "bob/drink", MERGED)
    plane.clock.forward(days=1)
    await write(plane, "Bob drinks tea", fact_key="bob/drink")
    assert [memory.content for memory in await active(plane)] == ["Bob drinks tea"]


async def test_a_correction_back_to_what_was_stored_without_a_key_counts(plane: Plane) -> None:
    await write(plane, "Bob drinks coffee")
    plane.clock.forward(days=1)
    await write(plane, "Bob drinks tea", fact_key="bob/drink")
    plane.clock.forward(days=1)
    back = await write(plane, "Bob drinks coffee", fact_key="bob/drink")
    assert back.decision.conflicts[0].winner_id == back.memory.id
    assert [memory.content for memory in await active(plane)] == ["Bob drinks coffee"]


async def test_a_better_source_that_confirms_is_the_source_from_then_on(plane: Plane) -> None:
    await write(plane, "The seat is 16A", fact_key="seat", source=LLM)
    confirmed = await write(plane, "The seat is 16A", fact_key="seat", source=HUMAN)
    assert (confirmed.memory.source.type, confirmed.memory.confidence) == (memory_pb2.SOURCE_TYPE_HUMAN, 1.0)
    plane.clock.forward(days=1)
    await write(plane, "The seat is 10A", fact_key="seat", source=USER)
    assert [memory.content for memory in await active(plane)] == ["The seat is 16A"]


async def test_a_repeat_adds_its_tags_and_metadata(plane: Plane) -> None:
    details = Struct()
    details.update({"ticket": "7"})
    await write(plane, "The crane is rented", tags=["crane"])
    again = await write(plane, "The crane is rented", tags=["rent"], metadata=details)
    assert set(again.memory.tags) == {"crane", "rent"}
    assert again.memory.metadata["ticket"] == "7"
    assert again.memory.version == 2


async def test_who_may_only_write_learns_no_content_of_others(plane: Plane) -> None:
    secret = await write(plane, "Bob earns 123456", fact_key="bob/salary", source=HUMAN)
    user = as_user(WRITER_KEY)
    rival = pb.WriteMemoryRequest(namespace="dept.sales", content="Bob earns 1", session_id="s", fact_key="bob/salary")
    answered = await plane.stub.WriteMemory(rival, metadata=user)
    known_id = answered.decision.conflicts[0].memory_id
    assert known_id == secret.memory.id
    update = pb.UpdateMemoryRequest(memory=memory_pb2.Memory(namespace="dept.sales", id=known_id, tags=["x"]))
    update.update_mask.paths.append("tags")
    repeat = pb.WriteMemoryRequest(namespace="dept.sales", content="Bob earns 123456", session_id="s")
    for response in (
        await plane.stub.UpdateMemory(update, metadata=user),
        await plane.stub.WriteMemory(repeat, metadata=user),
    ):
        assert response.memory.id == known_id
        assert not response.memory.content
        assert not response.memory.provenance.principal_id


async def test_a_fact_that_expired_contests_nothing(plane: Plane) -> None:
    await write(plane, "The code is 1", fact_key="code", source=HUMAN, ttl=Duration(seconds=1))
    plane.clock.forward(seconds=5)
    new = await write(plane, "The code is 2", fact_key="code", source=USER)
    assert (new.decision.action != MERGED, list(new.decision.conflicts)) == (True, [])
    assert contents(await search(plane, "code")) == ["The code is 2"]


async def test_facts_of_other_times_do_not_contradict(plane: Plane) -> None:
    old = await write(
        plane, "The rate is 3 percent", fact_key="rate", source=HUMAN, valid_from=day(2020), valid_to=day(2021)
    )
    await write(plane, "The rate is 4 percent", fact_key="rate", source=USER, valid_from=day(2022))
    past = await write(
        plane, "The rate is 2 percent", fact_key="rate", source=HUMAN, valid_from=day(2018), valid_to=day(2019)
    )
    assert contents(await search(plane, "rate")) == ["The rate is 4 percent"]
    for memory_id, end in ((old.memory.id, day(2021)), (past.memory.id, day(2019))):
        request = pb.GetMemoryRequest(namespace="dept.sales", id=memory_id)
        memory = (await plane.stub.GetMemory(request, metadata=as_user())).memory
        assert (memory.state, memory.valid_to) == (memory_pb2.STATE_SUPERSEDED, end)


async def test_a_fact_of_the_future_does_not_end_todays(plane: Plane) -> None:
    await write(plane, "The rate is 5 percent", fact_key="rate")
    ahead = Timestamp()
    ahead.FromMicroseconds(NOW_US + 90 * 86_400_000_000)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await write(plane, "The rate is 7 percent", fact_key="rate", valid_from=ahead)
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert contents(await search(plane, "rate")) == ["The rate is 5 percent"]


async def test_what_has_expired_is_read_and_listed_by_nobody(plane: Plane) -> None:
    written = (await write(plane, "The code is 1", ttl=Duration(seconds=1))).memory
    plane.clock.forward(seconds=5)
    call = plane.stub.GetMemory(pb.GetMemoryRequest(namespace="dept.sales", id=written.id), metadata=as_user())
    assert await call.code() is grpc.StatusCode.NOT_FOUND
    assert await active(plane) == []


async def test_a_late_retry_does_not_bring_back_what_was_forgotten_for_good(plane: Plane) -> None:
    written = (await write(plane, "Her locker code is 4711", request_id="r")).memory
    forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=written.id, mode=pb.FORGET_MODE_HARD)
    await plane.stub.ForgetMemory(forget, metadata=as_user())
    retried = await write(plane, "Her locker code is 4711", request_id="r")
    assert [reason.code for reason in retried.decision.reasons] == ["FORGOTTEN"]
    assert not retried.HasField("memory")
    assert contents(await search(plane, "locker code")) == []


async def test_withheld_memories_are_listed_to_reviewers_alone(plane: Plane) -> None:
    await write(plane, "All visitors are free", pool=memory_pb2.POOL_SHARED)
    reader = {
        "roles": {"reader": {"grants": [{"namespace": "dept.sales", "permissions": ["memory.read"]}]}},
        "principals": {"reader": {"api_key_sha256": [hash_api_key(WRITER_KEY)], "roles": ["reader"]}},
    }
    plane.use(POLICY | {"rbac": reader}, generation=2)
    request = pb.ListMemoriesRequest(namespace="dept.sales", states=[memory_pb2.STATE_PENDING_REVIEW])
    assert len((await plane.stub.ListMemories(request, metadata=as_user())).memories) == 1
    call = plane.stub.ListMemories(request, metadata=as_user(WRITER_KEY))
    assert await call.code() is grpc.StatusCode.PERMISSION_DENIED


async def update(plane: Plane, memory_id: str, **fields: Any) -> Any:
    changed = memory_pb2.Memory(namespace="dept.sales", id=memory_id, **fields)
    request = pb.UpdateMemoryRequest(memory=changed)
    request.update_mask.paths.extend(fields)
    return await plane.stub.UpdateMemory(request, metadata=as_user())


async def test_after_an_update_the_old_words_are_free_and_the_new_ones_taken(plane: Plane) -> None:
    first = (await write(plane, "The barn is red")).memory
    await update(plane, first.id, content="The barn is crimson")
    again = await write(plane, "The barn is red")
    assert (again.decision.action != MERGED, again.memory.id != first.id) == (True, True)
    assert (await write(plane, "The barn is crimson")).memory.id == first.id
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await update(plane, again.memory.id, content="The barn is crimson")
    assert failed.value.code() is grpc.StatusCode.ALREADY_EXISTS
    await update(plane, again.memory.id, kind=memory_pb2.KIND_PREFERENCE)
    assert (await write(plane, "The barn is red")).memory.id != again.memory.id


@pytest.mark.parametrize("fact_key", ["", "ann/leave"])
async def test_what_was_over_and_holds_again_is_a_new_memory(plane: Plane, fact_key: str) -> None:
    past = await write(plane, "Ann is on leave", fact_key=fact_key, valid_from=day(2025, 1), valid_to=day(2025, 2))
    now = await write(plane, "Ann is on leave", fact_key=fact_key, source=HUMAN)
    assert now.memory.id != past.memory.id
    assert not now.memory.HasField("valid_to")
    assert [memory.id for memory in await active(plane)] == [now.memory.id]
    await write(plane, "Ann is not on leave", fact_key=fact_key or "other", source=LLM)
    assert "Ann is on leave" in [memory.content for memory in await active(plane)]
