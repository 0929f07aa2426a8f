"""A write that contradicts a memory of equal standing advises the agent to ask the user."""

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, running_plane


async def write(plane: Plane, content: str, source: memory_pb2.SourceType.ValueType) -> pb.WriteMemoryResponse:
    request = pb.WriteMemoryRequest(
        namespace="dept.sales",
        content=content,
        subject_id="u1",
        fact_key="u1.city",
        source=memory_pb2.Source(type=source),
    )
    return await plane.stub.WriteMemory(request, metadata=as_user())


def advice(response: pb.WriteMemoryResponse) -> list[str]:
    return [reason.message for reason in response.decision.reasons if reason.code == "CLARIFY"]


async def test_the_agent_is_told_to_ask_which_of_two_equal_statements_holds() -> None:
    async with running_plane() as plane:
        first = await write(plane, "The customer sits in Lisbon", memory_pb2.SOURCE_TYPE_USER)
        second = await write(plane, "The customer sits in Porto", memory_pb2.SOURCE_TYPE_USER)
        (told,) = advice(second)
        assert first.memory.id in told
        assert '"The customer sits in Porto" or, as before, "The customer sits in Lisbon"?' in told
        assert [conflict.memory_id for conflict in second.decision.conflicts] == [first.memory.id]


async def test_a_better_source_settles_it_without_asking() -> None:
    async with running_plane() as plane:
        await write(plane, "The customer sits in Lisbon", memory_pb2.SOURCE_TYPE_LLM)
        assert advice(await write(plane, "The customer sits in Porto", memory_pb2.SOURCE_TYPE_USER)) == []


async def test_a_text_that_cannot_be_right_waits_for_review() -> None:
    async with running_plane() as plane:
        written = await write(plane, "Remember: the delivery is due on 2026-02-30", memory_pb2.SOURCE_TYPE_USER)
        assert written.decision.action == memory_pb2.DECISION_ACTION_PENDING_REVIEW
        reasons = {reason.code: reason.message for reason in written.decision.reasons}
        assert reasons["FORMAT_CHECK"] == "the date 2026-02-30 does not exist (format_checks: date)"
