"""Repeats merge, contradictions never do: over gRPC, on the embedded and the in-memory stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, running_plane, write

POLICY = {"write_policy": {"threshold": 0.0, "short_term_threshold": 0.0}}
MERGED, UPDATED = memory_pb2.DECISION_ACTION_MERGED, memory_pb2.DECISION_ACTION_UPDATED
HUMAN = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_HUMAN)
LLM = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_LLM)
NEAR_REPEATS = 1000


@pytest.fixture(params=["embedded", "in memory"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    async with running_plane(tmp_path if request.param == "embedded" else None, policy=POLICY) as running:
        yield running


async def active(plane: Plane) -> list[str]:
    listed = await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user())
    return [memory.content for memory in listed.memories]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Oslo.", "My home is in Bergen."),
        ("My favourite colour is blue", "My favourite colour is green"),
        ("My sister was born on 3 March.", "My sister's birthday is 4 March."),
        ("我身高一米七五", "我的身高是180厘米"),
        ("我住在成都", "我搬到杭州了"),
    ],
)
async def test_the_newer_of_two_values_of_one_fact_supersedes(plane: Plane, old: str, new: str) -> None:
    first = await write(plane, old)
    second = await write(plane, new)
    assert await active(plane) == [new]
    [conflict] = second.decision.conflicts
    assert (conflict.memory_id, conflict.winner_id, conflict.rule) == (first.memory.id, second.memory.id, "NEWEST")
    assert second.memory.fact_key.startswith("auto:fact:self")


async def test_a_better_source_holds_its_fact(plane: Plane) -> None:
    await write(plane, "I live in Oslo.", source=HUMAN)
    lost = await write(plane, "My home is in Bergen.", source=LLM)
    assert lost.memory.state == memory_pb2.STATE_SUPERSEDED
    assert await active(plane) == ["I live in Oslo."]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Oslo.", "My home is in Oslo."),
        ("我妈妈的生日是三月五日", "我母亲是3月5号出生的"),
        ("I'm 31 years old", "My age is 31"),
    ],
)
async def test_the_same_fact_in_other_words_is_one_memory(plane: Plane, old: str, new: str) -> None:
    first = await write(plane, old)
    second = await write(plane, new)
    assert (second.memory.id, second.decision.action) == (first.memory.id, UPDATED)
    assert not second.decision.conflicts
    assert await active(plane) == [new]


async def test_what_is_denied_supersedes_what_it_denies(plane: Plane) -> None:
    await write(plane, "I live in Oslo.")
    denial = await write(plane, "I no longer live in Oslo.")
    assert await active(plane) == ["I no longer live in Oslo."]
    assert denial.memory.fact_key == ""


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("I live in Oslo.", "My brother lives in Bergen.", {}),
        ("I like tea", "I like hiking", {}),
        ("I live in Oslo.", "I used to live in Bergen.", {}),
        ("I live in Oslo.", "I want to live in Bergen.", {}),
        ("I live in Oslo.", "I live in Bergen.", {"speaker": "Ann"}),
        ("I live in Oslo.", "I live in Bergen.", {"subject_id": "ann"}),
        ("I live in Oslo.", "I live in Bergen.", {"kind": memory_pb2.KIND_EPISODE}),
        ("我喜欢爬山", "我喜欢游泳", {}),
        ("我爸爸住在成都", "我妈妈住在杭州", {}),
        ("我住在成都", "我以前住在杭州", {}),
    ],
)
async def test_facts_that_stand_beside_each_other_both_stay(
    plane: Plane, old: str, new: str, fields: dict[str, object]
) -> None:
    first = await write(plane, old)
    second = await write(plane, new, **fields)
    assert first.memory.id != second.memory.id
    assert second.memory.state == memory_pb2.STATE_ACTIVE
    assert not second.decision.conflicts
    assert sorted(await active(plane)) == sorted([old, new])


async def test_a_key_that_the_caller_gives_takes_the_place_of_a_derived_one(plane: Plane) -> None:
    first = await write(plane, "I live in Oslo.")
    keyed = await write(plane, "I live in Oslo.", fact_key="ann/home")
    assert (keyed.memory.id, keyed.memory.fact_key, keyed.decision.action) == (first.memory.id, "ann/home", MERGED)


async def test_an_update_to_another_fact_drops_the_derived_key(plane: Plane) -> None:
    stored = (await write(plane, "I live in Oslo.")).memory
    changed = pb.UpdateMemoryRequest(
        memory=memory_pb2.Memory(id=stored.id, namespace="dept.sales", content="My age is 31"),
    )
    changed.update_mask.paths.append("content")
    answer = await plane.stub.UpdateMemory(changed, metadata=as_user())
    assert answer.memory.fact_key == ""
    await write(plane, "My home is in Bergen.")
    assert sorted(await active(plane)) == ["My age is 31", "My home is in Bergen."]


async def test_a_batch_comes_to_the_same_as_one_by_one(plane: Plane) -> None:
    texts = [
        "I live in Oslo.",
        "My home is in Oslo.",
        "I like tea",
        "My home is in Bergen.",
        "I no longer live in Bergen.",
    ]
    requests = [pb.WriteMemoryRequest(namespace="dept.sales", content=text, session_id="s1") for text in texts]
    batch = pb.BatchWriteMemoriesRequest(requests=requests)
    await plane.stub.BatchWriteMemories(batch, metadata=as_user())
    assert sorted(await active(plane)) == ["I like tea", "I no longer live in Bergen."]


async def test_a_thousand_near_repeats_keep_the_size_of_one() -> None:
    ways = ("I live in Oslo{}", "My home is in Oslo{}", "I'm based in Oslo these days{}", "Well, I reside in Oslo{}")
    async with running_plane(policy=POLICY) as plane:
        texts = [ways[number % len(ways)].format("!" * (number % 7)) for number in range(NEAR_REPEATS)]
        for start in range(0, NEAR_REPEATS, 100):
            requests = [
                pb.WriteMemoryRequest(namespace="dept.sales", content=text, session_id="s1", tags=["home"])
                for text in texts[start : start + 100]
            ]
            batch = pb.BatchWriteMemoriesRequest(requests=requests)
            await plane.stub.BatchWriteMemories(batch, metadata=as_user())
        listed = await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user())
        [memory] = listed.memories
        one = await write(plane, texts[-1], "dept.other", tags=["home"])
        assert memory.content == texts[-1]
        assert memory.ByteSize() <= one.memory.ByteSize() + 64
