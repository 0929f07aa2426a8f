"""Whatever is down, each write has an outcome of its own, and what was stored is there at once. About 3 s."""

from collections.abc import Sequence

import grpc
import pytest

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.faulty import faulty_plane
from tests.integration.harness import Plane, as_user

RENEWAL = "Remember: Acme renews its service contract every March"
ITEMS = tuple(
    pb.WriteMemoryRequest(namespace="dept.sales", content=content, session_id=session)
    for content, session in ((RENEWAL, ""), (RENEWAL, ""), ("haha ok", ""), ("", ""), ("haha yes", "s"))
)
POLICY = {
    "write_policy": {"rules": [{"pattern": "^Remember", "direct": True}, {"pattern": "haha", "score": 0.0}]},
}
OUTCOMES = ["CREATED", "MERGED", "REJECTED", "INVALID_ARGUMENT", "KEPT_WORKING"]


def outcome(result: pb.BatchWriteResult) -> str:
    """What became of an item; there is no item of which nothing is said."""
    if result.WhichOneof("result") == "error":
        return next(code.name for code in grpc.StatusCode if code.value[0] == result.error.code)
    assert result.response.policy_version
    name = memory_pb2.DecisionAction.Name(result.response.decision.action)
    return name.removeprefix("DECISION_ACTION_")


async def written(plane: Plane) -> Sequence[pb.BatchWriteResult]:
    request = pb.BatchWriteMemoriesRequest(requests=ITEMS)
    return (await plane.stub.BatchWriteMemories(request, metadata=as_user())).results


@pytest.mark.parametrize(
    "down", [(), ("vectors",), ("texts",), ("vectors", "texts"), ("embedder",), ("cache",)], ids="+".join
)
async def test_each_item_has_its_outcome_and_what_was_stored_is_there_at_once(down: tuple[str, ...]) -> None:
    async with faulty_plane(POLICY) as faulty:
        faulty.cut_off(*down)
        results = await written(faulty.plane)
        assert [outcome(result) for result in results] == OUTCOMES
        rejected = results[2].response.decision
        assert rejected.reasons
        assert rejected.score < rejected.threshold
        stored = {result.response.memory.id for result in results if result.response.memory.id}
        assert len(stored) == 2
        for memory_id in stored:
            get = pb.GetMemoryRequest(namespace="dept.sales", id=memory_id)
            assert (await faulty.plane.stub.GetMemory(get, metadata=as_user())).memory.id == memory_id


async def test_without_a_record_store_nothing_is_said_to_be_stored() -> None:
    async with faulty_plane(POLICY) as faulty:
        faulty.cut_off("records")
        results = await written(faulty.plane)
        assert {outcome(result) for result in results} == {"UNAVAILABLE", "INVALID_ARGUMENT"}
        faulty.mend()
        listed = await faulty.plane.stub.ListMemories(
            pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user()
        )
        assert not listed.memories
