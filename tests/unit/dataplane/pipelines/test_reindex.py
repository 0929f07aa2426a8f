"""Rebuilds: what they mend, what they go on with, and what is refused."""

import asyncio
from dataclasses import replace

import pytest
from google.longrunning import operations_pb2

from dataplane.changes import OperationRecord
from dataplane.pipelines.check_indexes import CheckQuestion
from dataplane.pipelines.operations import shown
from dataplane.pipelines.reindex import NAMES
from memplane.errors import InvalidField, PermissionDenied, RequestIdReused
from memplane.v1 import maintenance_service_pb2 as pb
from tests.contract.builders import vector_of
from tests.unit.dataplane.pipelines.upkeep_parts import (
    NEW,
    NEXT,
    OLD,
    OPERATOR,
    REBUILD,
    TEXT,
    VECTOR,
    WINDOW,
    Upkeep,
    an_upkeep,
    grants,
    soon,
)

IDS = tuple(f"mem_{1_700_000_000_000 + number:012x}{number:020x}" for number in range(20))
OF_VECTORS = pb.ReindexRequest(index=pb.INDEX_KIND_VECTOR)
TO_NEW = pb.ReindexRequest(index=pb.INDEX_KIND_VECTOR, embedding_model=NEW)


async def done(upkeep: Upkeep, name: str) -> OperationRecord:
    """The operation once it is done; it is looked at between two turns of the event loop."""
    async with asyncio.timeout(10):
        while True:
            record = await upkeep.store.find_operation(name, soon())
            assert record is not None
            if record.is_done:
                return record
            await asyncio.sleep(0)


async def rebuilt(upkeep: Upkeep, request: pb.ReindexRequest) -> tuple[pb.ReindexProgress, pb.ReindexResult]:
    """What a rebuild told on its way and came to."""
    async with upkeep.projecting():
        operation = await upkeep.reindexing.begin(request, OPERATOR, soon())
        record = await done(upkeep, operation.name)
    return told(shown(record))


def told(operation: operations_pb2.Operation) -> tuple[pb.ReindexProgress, pb.ReindexResult]:
    progress, result = pb.ReindexProgress(), pb.ReindexResult()
    assert operation.done
    assert operation.metadata.Unpack(progress)
    assert operation.response.Unpack(result), operation.error
    return progress, result


async def consistent(upkeep: Upkeep) -> dict[str, bool]:
    checks = await upkeep.checks.look(CheckQuestion(full=True), soon())
    return {check.name: check.consistent for check in checks}


def spoil(upkeep: Upkeep) -> None:
    """Makes a memory missing, another one stale, one different and one an orphan."""
    entries = upkeep.index[VECTOR].entries
    del entries[IDS[0]]
    entries[IDS[1]] = replace(entries[IDS[1]], version=0)
    entries[IDS[2]] = replace(entries[IDS[2]], embedding=vector_of(77))
    entries["mem_gone"] = replace(entries[IDS[3]], memory_id="mem_gone")


async def test_a_rebuild_puts_every_memory_in_line_and_removes_orphans() -> None:
    upkeep = await an_upkeep(*IDS)
    spoil(upkeep)
    progress, result = await rebuilt(upkeep, OF_VECTORS)
    assert (progress.name, progress.total_count, progress.enqueued_count, progress.due_count) == (VECTOR, 20, 20, 0)
    assert (result.index, result.index_count, result.activated, result.dead_count) == (
        pb.INDEX_KIND_VECTOR,
        20,
        False,
        0,
    )
    assert await consistent(upkeep) == {VECTOR: True, TEXT: True}


async def test_a_repair_puts_in_line_only_what_is_wrong() -> None:
    upkeep = await an_upkeep(*IDS)
    spoil(upkeep)
    progress, _ = await rebuilt(upkeep, pb.ReindexRequest(index=pb.INDEX_KIND_VECTOR, repair_only=True))
    assert progress.enqueued_count == 3
    assert await consistent(upkeep) == {VECTOR: True, TEXT: True}


@pytest.mark.parametrize("repair_only", [False, True])
async def test_what_is_newer_than_the_record_store_is_set_back(repair_only: bool) -> None:
    upkeep = await an_upkeep(*IDS)
    entries = upkeep.index[VECTOR].entries
    entries[IDS[1]] = replace(entries[IDS[1]], version=7)
    await rebuilt(upkeep, pb.ReindexRequest(index=pb.INDEX_KIND_VECTOR, repair_only=repair_only))
    assert entries[IDS[1]].version == 1
    assert await consistent(upkeep) == {VECTOR: True, TEXT: True}


async def test_the_text_index_is_rebuilt_alike() -> None:
    upkeep = await an_upkeep(*IDS)
    upkeep.index[TEXT].entries.clear()
    progress, result = await rebuilt(upkeep, pb.ReindexRequest(index=pb.INDEX_KIND_TEXT))
    assert (progress.name, result.index_count) == (TEXT, 20)


async def test_another_models_index_is_built_beside_the_active_one_and_then_used() -> None:
    upkeep = await an_upkeep(*IDS)
    _, result = await rebuilt(upkeep, TO_NEW)
    assert (result.index_count, result.activated) == (20, True)
    assert upkeep.spaces.current.model == NEW
    assert await consistent(upkeep) == {VECTOR: True, NEXT: True, TEXT: True}


async def test_a_built_index_can_be_kept_beside_the_active_one() -> None:
    upkeep = await an_upkeep(*IDS)
    _, result = await rebuilt(upkeep, pb.ReindexRequest(index=1, embedding_model=NEW, keep_active=True))
    assert (result.index_count, result.activated) == (20, False)
    assert upkeep.spaces.current.model == OLD


async def test_searches_keep_the_active_model_until_the_new_index_is_level() -> None:
    upkeep = await an_upkeep(*IDS)
    operation = await upkeep.reindexing.begin(TO_NEW, OPERATOR, soon())
    for _ in range(50):
        await upkeep.project(limit=1)
        await asyncio.sleep(0)
        assert (upkeep.spaces.current.model == NEW) <= (len(upkeep.index[NEXT].entries) == 20)
    async with upkeep.projecting():
        await done(upkeep, operation.name)
    assert upkeep.spaces.current.model == NEW


async def test_only_so_many_rows_of_the_active_index_wait_in_line() -> None:
    upkeep = await an_upkeep(*IDS)
    operation = await upkeep.reindexing.begin(OF_VECTORS, OPERATOR, soon())
    for _ in range(200):
        await asyncio.sleep(0)
        (vector,) = [item for item in await upkeep.store.progress(soon()) if item.index == VECTOR]
        assert vector.due_count < WINDOW + REBUILD.page_size
    assert WINDOW <= vector.due_count < len(IDS)
    async with upkeep.projecting():
        await done(upkeep, operation.name)


async def test_a_backend_that_is_down_for_a_while_is_waited_for() -> None:
    upkeep = await an_upkeep(*IDS)
    upkeep.index[VECTOR].down = 3
    operation = await upkeep.reindexing.begin(OF_VECTORS, OPERATOR, soon())
    for _ in range(100):
        await asyncio.sleep(0)
    assert upkeep.index[VECTOR].down == 0
    async with upkeep.projecting():
        assert told(shown(await done(upkeep, operation.name)))[1].index_count == 20


async def test_a_defect_ends_the_operation_with_a_correlation_id_and_no_words_of_its_own() -> None:
    upkeep = await an_upkeep(*IDS)

    async def broken(*_arguments: object) -> None:
        raise ValueError("secret detail")

    upkeep.index[VECTOR].flush = broken  # type: ignore[method-assign]
    async with upkeep.projecting():
        operation = await upkeep.reindexing.begin(OF_VECTORS, OPERATOR, soon())
        ended = shown(await done(upkeep, operation.name))
    assert "internal error" in ended.error.message
    assert "secret" not in str(ended)


async def test_a_second_request_for_the_same_index_joins_the_first() -> None:
    upkeep = await an_upkeep(*IDS)
    first, second, other = [
        await upkeep.reindexing.begin(request, OPERATOR, soon())
        for request in (OF_VECTORS, pb.ReindexRequest(index=1, repair_only=True), pb.ReindexRequest(index=2))
    ]
    assert first.name == second.name != other.name
    async with upkeep.projecting():
        await done(upkeep, first.name)
        third = await upkeep.reindexing.begin(OF_VECTORS, OPERATOR, soon())
        assert third.name != first.name
        await done(upkeep, third.name)
        await done(upkeep, other.name)


async def test_a_request_id_leads_to_its_operation_even_when_that_is_done() -> None:
    upkeep = await an_upkeep(*IDS)
    request = pb.ReindexRequest(index=1, request_id="once")
    async with upkeep.projecting():
        first = await upkeep.reindexing.begin(request, OPERATOR, soon())
        await done(upkeep, first.name)
        again = await upkeep.reindexing.begin(request, OPERATOR, soon())
    assert (again.name, again.done) == (first.name, True)
    with pytest.raises(RequestIdReused):
        await upkeep.reindexing.begin(pb.ReindexRequest(index=2, request_id="once"), OPERATOR, soon())


async def test_who_takes_over_goes_on_where_the_other_one_ended() -> None:
    first = await an_upkeep(*IDS)
    operation = await first.reindexing.begin(TO_NEW, OPERATOR, soon())
    for _ in range(200):
        await asyncio.sleep(0)
    await first.reindexing.stop()
    assert running() == 0
    second = first.beside()
    await second.reindexing.take_over(soon())
    async with second.projecting():
        progress, result = told(shown(await done(second, operation.name)))
    assert (progress.enqueued_count, progress.through_id) == (20, IDS[-1])
    assert (result.index_count, result.activated, second.spaces.current.model) == (20, True, NEW)


async def test_a_rebuild_is_taken_over_when_nobody_has_renewed_its_marker_for_a_while() -> None:
    first = await an_upkeep(*IDS)
    await first.reindexing.begin(OF_VECTORS, OPERATOR, soon())
    second = first.beside()
    first.clock.time_us += 29_000_000
    await second.reindexing.take_over(soon())
    assert running() == 1
    first.clock.time_us += 1_000_000
    await second.reindexing.take_over(soon())
    assert running() == 2
    await second.reindexing.take_over(soon())
    assert running() == 2
    for each in (first, second):
        await each.reindexing.stop()


async def test_a_marker_of_a_clock_that_is_an_hour_fast_keeps_nobody_waiting() -> None:
    first = await an_upkeep(*IDS)
    first.clock.time_us += 3_600_000_000
    await first.reindexing.begin(OF_VECTORS, OPERATOR, soon())
    second = first.beside()
    first.clock.time_us -= 3_600_000_000
    await second.reindexing.take_over(soon())
    assert running() == 2
    for each in (first, second):
        await each.reindexing.stop()


def running() -> int:
    """How many rebuilds are carried out."""
    return sum(task.get_name().startswith("rebuild-") for task in asyncio.all_tasks())


async def test_rebuilds_of_indexes_that_others_follow_are_left_to_them() -> None:
    upkeep = await an_upkeep(*IDS)
    operation = await upkeep.reindexing.begin(OF_VECTORS, OPERATOR, soon())
    await upkeep.reindexing.stop()
    stranger = upkeep.beside((TEXT,))
    await stranger.reindexing.take_over(soon())
    assert running() == 0
    assert operation.name.startswith(NAMES)


@pytest.mark.parametrize(
    ("request_", "field", "words"),
    [
        (pb.ReindexRequest(index=1, embedding_model="bge"), "embedding_model", f"{NEW}, {OLD} .{OLD} is active"),
        (pb.ReindexRequest(index=2, embedding_model=NEW), "embedding_model", "vector index"),
        (pb.ReindexRequest(index=1, keep_active=True), "keep_active", "another embedding model"),
        (pb.ReindexRequest(index=1, keep_active=True, embedding_model=OLD), "keep_active", "another embedding model"),
    ],
)
async def test_bad_input_is_named(request_: pb.ReindexRequest, field: str, words: str) -> None:
    upkeep = await an_upkeep(*IDS)
    with pytest.raises(InvalidField, match=words) as caught:
        await upkeep.reindexing.begin(request_, OPERATOR, soon())
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_rebuilding_needs_maintenance_on_every_namespace() -> None:
    upkeep = await an_upkeep()
    for caller in (grants("memory.write"), grants("maintenance", namespace="dept")):
        with pytest.raises(PermissionDenied, match="maintenance"):
            await upkeep.reindexing.begin(OF_VECTORS, caller, soon())


async def test_an_empty_store_is_rebuilt_at_once() -> None:
    upkeep = await an_upkeep()
    _, result = await rebuilt(upkeep, OF_VECTORS)
    assert result.index_count == 0
