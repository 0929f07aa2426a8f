"""A search under each ranking profile, over gRPC. About 3 seconds.

Relevance is the share of words in common: each memory holds what the question asks, and more or less beside.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memplane.v1 import memory_pb2
from tests.integration.harness import KEEP_ALL, NOW_US, Plane, contents, running_plane, search, write

QUESTION = "pump maintenance schedule"
NEAR = "pump maintenance schedule monday"
NEW = "pump maintenance schedule tuesday and other notes"
GUESS = "pump maintenance schedule friday"
DAY_S = 86_400


def days_old(days: float) -> Timestamp:
    return Timestamp(seconds=NOW_US // 1_000_000 - int(days * DAY_S))


def profile(name: str, **numbers: Any) -> Mapping[str, Any]:
    retrieve = {"profile": name, "query_cache_ttl_s": 0, **({name: numbers} if numbers else {})}
    return {**KEEP_ALL, "retrieve_policy": retrieve}


async def fill(plane: Plane) -> None:
    """Equals but for meaning, age and source; nothing merges, for the days differ."""
    llm = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_LLM)
    user = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_USER)
    await write(plane, NEAR, event_time=days_old(15), source=user, session_id="a")
    await write(plane, NEW, event_time=days_old(0), source=user, session_id="b")
    await write(plane, GUESS, event_time=days_old(15), source=llm, session_id="c", category="upkeep")


@pytest.mark.parametrize(
    ("policy", "task_type", "order"),
    [
        (profile("weighted"), "", [NEAR, NEW, GUESS]),
        (profile("balanced"), "", [NEAR, NEW, GUESS]),
        (profile("orchestrated"), "", [NEW, NEAR, GUESS]),
        (profile("companion", keep_above=0.0, decay_per_day=0.05), "", [NEW, NEAR, GUESS]),
        (profile("companion", keep_above=0.4, decay_per_day=0.0), "", [NEAR, NEW]),
    ],
    ids=["weighted", "balanced", "orchestrated", "companion", "companion_floor"],
)
async def test_each_profile_has_its_order(policy: Mapping[str, Any], task_type: str, order: list[str]) -> None:
    async with running_plane(policy=policy) as plane:
        await fill(plane)
        assert contents(await search(plane, QUESTION, task_type=task_type, record_access=False)) == order


async def test_the_hits_of_a_companion_carry_its_numbers_and_say_them() -> None:
    async with running_plane(policy=profile("companion")) as plane:
        await write(
            plane, QUESTION, event_time=days_old(12), source=memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_USER)
        )
        [first] = (await search(plane, QUESTION, explain=True)).hits
        assert first.signals.freshness == pytest.approx(0.8869, abs=1e-4)
        assert first.signals.boost == 1.0
        assert first.confidence == pytest.approx(0.8869 * 0.9, abs=1e-4)
        assert first.explanation.startswith("similarity 1.00, ")
        assert "never used, said 12 days ago counts 0.89, not recalled in 30 days, source USER counts 0.90" in (
            first.explanation
        )


async def test_a_call_may_ask_for_less_than_the_companions_floor() -> None:
    async with running_plane(policy=profile("companion")) as plane:
        await write(plane, NEAR, event_time=days_old(200))
        assert contents(await search(plane, QUESTION)) == []
        assert contents(await search(plane, QUESTION, min_confidence=0.01)) == [NEAR]


async def test_a_subtree_may_have_a_profile_of_its_own() -> None:
    own = {"dept.friends": {"retrieve_policy": {"profile": "companion", "companion": {"keep_above": 0.95}}}}
    async with running_plane(policy={**KEEP_ALL, "namespace_policy": {"overrides": own}}) as plane:
        for namespace in ("dept.sales", "dept.friends.ann"):
            await write(plane, NEAR, namespace)
        assert contents(await search(plane, QUESTION)) == [NEAR]
        assert contents(await search(plane, QUESTION, "dept.friends.ann")) == []
