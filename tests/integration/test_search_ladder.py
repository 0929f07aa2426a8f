"""What a search answers with any part down: every row of the table in the design, and what it must never do."""

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
import pytest

from dataplane.model import SYSTEM_SCOPE, Candidate, Scope
from dataplane.pipelines.retrieve import BY_MEANING, BY_USE, BY_WORDS
from dataplane.pipelines.without_records import FROM_INDEXES, NOT_AS_FRESH
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.faulty import NEVER_S, FaultyPlane, faulty_plane
from tests.integration.harness import as_user, contents, search, write

LADDER = "The ladder is behind the shed"
FUSES = "Spare fuses are in drawer three"
SCOPE = Scope(("dept.sales",))

TABLE: Mapping[tuple[str, ...], Mapping[str, str] | None] = {
    (): {},
    ("vectors",): {"vector_index": BY_WORDS},
    ("texts",): {"text_index": BY_MEANING},
    ("vectors", "texts"): {"vector_index": BY_USE, "text_index": BY_USE},
    ("cache",): {},
    ("embedder",): {"embedder": BY_WORDS},
    ("embedder", "texts"): {"embedder": BY_USE, "text_index": BY_USE},
    ("embedder", "vectors", "texts", "cache"): {"embedder": BY_USE, "text_index": BY_USE},
    ("vectors", "cache"): {"vector_index": BY_WORDS},
    ("records",): {"record_store": FROM_INDEXES},
    ("records", "vectors"): {"record_store": FROM_INDEXES, "vector_index": "found by words"},
    ("records", "texts"): {"record_store": FROM_INDEXES, "text_index": "found by meaning"},
    ("records", "embedder"): {"record_store": FROM_INDEXES, "embedder": "found by words"},
    ("records", "embedder", "texts"): None,
    ("records", "vectors", "texts"): None,
    ("records", "cache"): None,
    ("records", "vectors", "texts", "cache", "embedder"): None,
}
"""What is down, and what the answer says was done instead of what; None: UNAVAILABLE."""


def notes(response: pb.SearchMemoriesResponse) -> dict[str, str]:
    assert {note.reason for note in response.degraded} <= {"BACKEND_UNAVAILABLE"}
    return {note.backend: note.fallback for note in response.degraded}


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value.code()


@pytest.mark.parametrize(("down", "said"), TABLE.items(), ids=["+".join(down) or "nothing" for down in TABLE])
async def test_every_row_of_the_table(down: tuple[str, ...], said: Mapping[str, str] | None) -> None:
    async with faulty_plane() as faulty:
        for content in (LADDER, FUSES):
            await write(faulty.plane, content)
        faulty.cut_off(*down)
        if said is None:
            assert await code_of(search(faulty.plane, "ladder shed")) is grpc.StatusCode.UNAVAILABLE
        else:
            found = await search(faulty.plane, "ladder shed")
            assert notes(found) == said
            assert contents(found)[0] == LADDER
        faulty.mend()
        again = await search(faulty.plane, "ladder shed again")
        assert (notes(again), contents(again)[0]) == ({}, LADDER)


@pytest.mark.parametrize("step", ["reads", "last_position", "pending", "fetch"])
async def test_the_record_store_may_fail_at_any_step(step: str) -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        faulty.ports["records"].down = {step}
        found = await search(faulty.plane, "ladder")
        assert (contents(found), notes(found)) == ([LADDER], {"record_store": FROM_INDEXES})


async def test_an_index_that_does_not_give_its_rows_did_not_take_part() -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        faulty.ports["vectors"].down = {"rows"}
        found = await search(faulty.plane, "ladder")
        assert (contents(found), notes(found)) == (
            [LADDER],
            {"record_store": FROM_INDEXES, "vector_index": "found by words"},
        )


async def test_without_both_indexes_the_most_used_is_found_however_old_it_is() -> None:
    async with faulty_plane({"retrieve_policy": {"top_k": 1, "vector_candidates": 1, "text_candidates": 1}}) as faulty:
        await write(faulty.plane, LADDER)
        for _ in range(3):
            assert contents(await search(faulty.plane, "ladder shed")) == [LADDER]
        await faulty.plane.recorder.flush()
        faulty.plane.clock.forward(seconds=60)
        for number in range(5):
            await write(faulty.plane, f"Remark number {number}")
        faulty.cut_off("vectors", "texts")
        assert contents(await search(faulty.plane, "the ladder behind the shed")) == [LADDER]


@pytest.mark.parametrize("mode", [pb.FORGET_MODE_SOFT, pb.FORGET_MODE_HARD])
async def test_what_was_forgotten_does_not_come_back_from_an_index_that_has_not_heard_of_it(
    mode: pb.ForgetMode.ValueType,
) -> None:
    async with faulty_plane() as faulty:
        ladder, _ = [await write(faulty.plane, content) for content in (LADDER, FUSES)]
        for index in ("vectors", "texts"):
            faulty.ports[index].down = {"delete"}
        forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=ladder.memory.id, mode=mode)
        forgotten = await faulty.plane.stub.ForgetMemory(forget, metadata=as_user())
        assert {"vector_index", "text_index"} <= set(forgotten.pending_backends)
        faulty.cut_off("records")
        found = await search(faulty.plane, "ladder shed fuses")
        assert (contents(found), notes(found)) == ([FUSES], {"record_store": FROM_INDEXES})


async def test_without_tombstones_that_can_be_relied_on_nothing_is_answered() -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        cache = faulty.ports["cache"].inner
        cache._lives += 1  # it has lost some
        assert await code_of(search(faulty.plane, "ladder")) is grpc.StatusCode.UNAVAILABLE


async def test_an_answer_without_the_record_store_leaves_no_trace() -> None:
    async with faulty_plane() as faulty:
        written = await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        found = await search(faulty.plane, "ladder")
        assert (contents(found), found.consistency_token) == ([LADDER], "")
        faulty.mend()
        await faulty.plane.recorder.flush()
        (row,) = await faulty.ports["records"].fetch(SCOPE, [written.memory.id], "hash-384", 0, NEVER_S)
        assert (row.recent_access_count, row.memory.access_count) == (0, 0)
        again = await search(faulty.plane, "ladder")
        assert (notes(again), bool(again.consistency_token)) == ({}, True)


async def test_an_answer_that_cannot_be_as_fresh_as_was_asked_says_so() -> None:
    async with faulty_plane() as faulty:
        written = await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        found = await search(faulty.plane, "ladder", at_least_as_fresh=written.consistency_token)
        assert (contents(found), notes(found)) == ([LADDER], {"record_store": NOT_AS_FRESH})


async def test_an_answer_in_the_cache_is_as_right_as_ever() -> None:
    async with faulty_plane() as faulty:
        written = await write(faulty.plane, LADDER)
        first = await search(faulty.plane, "ladder")
        faulty.cut_off("records", "vectors", "texts", "embedder")
        found = await search(faulty.plane, "ladder", at_least_as_fresh=written.consistency_token)
        assert (contents(found), notes(found)) == ([LADDER], {})
        assert found.consistency_token == first.consistency_token


async def test_the_past_and_memories_by_id_or_list_need_the_record_store() -> None:
    async with faulty_plane() as faulty:
        written = await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        past = pb.SearchMemoriesRequest(namespace="dept.sales", query="ladder")
        past.as_of.FromMicroseconds(faulty.plane.clock.now_us())
        stub = faulty.plane.stub
        get = pb.GetMemoryRequest(namespace="dept.sales", id=written.memory.id)
        for call in (
            stub.SearchMemories(past, metadata=as_user()),
            stub.GetMemory(get, metadata=as_user()),
            stub.ListMemories(pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user()),
        ):
            assert await code_of(call) is grpc.StatusCode.UNAVAILABLE


async def test_a_context_is_made_without_the_record_store_too() -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        faulty.cut_off("records")
        request = pb.GetContextRequest(search=pb.SearchMemoriesRequest(namespace="dept.sales", query="ladder"))
        made = await faulty.plane.stub.GetContext(request, metadata=as_user())
        assert LADDER in made.context
        assert [note.backend for note in made.degraded] == ["record_store"]


async def test_an_outage_never_looks_like_no_memories() -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        assert contents(await search(faulty.plane, "ladder", "dept.hr")) == []
        faulty.cut_off("records")
        elsewhere = search(faulty.plane, "a ladder of hr", "dept.hr")
        assert await code_of(elsewhere) is grpc.StatusCode.UNAVAILABLE


async def test_scope_filter_and_expiry_are_looked_at_again_whatever_an_index_says() -> None:
    async with faulty_plane() as faulty:
        ladder = await write(faulty.plane, LADDER, tags=["tools"])
        foreign = await write(faulty.plane, "The ladder of hr is red", "dept.hr")
        request = {"ttl": {"seconds": 60}}
        await write(faulty.plane, "The ladder is lent out today", **request)
        faulty.cut_off("records")
        assert len((await search(faulty.plane, "ladder")).hits) == 2
        faulty.plane.clock.forward(seconds=61)
        assert contents(await search(faulty.plane, "ladder now")) == [LADDER]
        _answer_anything(faulty, [ladder.memory.id, foreign.memory.id])
        found = await search(faulty.plane, "whose ladder")
        assert contents(found) == [LADDER]


def _answer_anything(faulty: FaultyPlane, memory_ids: list[str]) -> None:
    """An index that passes over the scope, with rows that it must not give."""
    texts = faulty.ports["texts"].inner
    rows = texts.rows

    async def all_rows(_scope: Scope, ids: list[str], deadline_s: float) -> dict[str, bytes]:
        found: dict[str, bytes] = await rows(SYSTEM_SCOPE, ids, deadline_s)
        return {**found, "mem_0": b"of another layout", "mem_1": next(iter(found.values()))}

    async def search_all(*_asked: Any) -> list[Candidate]:
        return [Candidate(memory_id, 1, 1.0) for memory_id in [*memory_ids, "mem_0", "mem_1"]]

    texts.rows, texts.search = all_rows, search_all


LIMITS = {
    backend: {"timeout_s": 0.4}
    for backend in ("record_store", "vector_index", "text_index", "cache", "queue", "embedder")
}


async def timed(call: Any) -> tuple[Any, float]:
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    return await call, now_s() - began_s


@pytest.mark.alone
@pytest.mark.parametrize(
    ("silent", "said"),
    [
        (("vectors",), {"vector_index"}),
        (("texts",), {"text_index"}),
        (("embedder",), {"embedder"}),
        (("vectors", "texts"), {"vector_index", "text_index"}),
        (("embedder", "texts"), {"embedder", "text_index"}),
        (("records",), {"record_store"}),
        (("cache",), set()),
    ],
)
async def test_a_silent_backend_costs_its_time_limit_once(silent: tuple[str, ...], said: set[str]) -> None:
    async with faulty_plane({"degradation_policy": LIMITS}) as faulty:
        await write(faulty.plane, f"{LADDER} of INV-2024/0031")
        faulty.silence(*silent)
        found, seconds = await timed(search(faulty.plane, "ladder INV-2024/0031"))
        assert set(notes(found)) == said
        assert len(found.hits) == 1
        assert seconds < 0.75, "one limit, not the sum of several"


@pytest.mark.parametrize("silent", ["vectors", "texts", "embedder", "records"])
async def test_a_caller_in_a_hurry_is_answered_without_what_is_silent(silent: str) -> None:
    async with faulty_plane() as faulty:
        await write(faulty.plane, LADDER)
        faulty.silence(silent)
        request = pb.SearchMemoriesRequest(namespace="dept.sales", query="ladder")
        found = await faulty.plane.stub.SearchMemories(request, metadata=as_user(), timeout=1.0)
        assert contents(found) == [LADDER]
        assert len(found.degraded) == 1
