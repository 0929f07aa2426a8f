"""What the light check of the indexes tells."""

import asyncio
import logging

import pytest

from dataplane.index_watch import INDEX_BEHIND, INDEX_INCONSISTENT, IndexWatch, WatchOptions
from tests.deadline import eventually
from tests.unit.dataplane.pipelines.upkeep_parts import NEXT, TEXT, VECTOR, Upkeep, an_upkeep

IDS = tuple(f"mem_{number}" for number in range(10))


def watch_of(upkeep: Upkeep, **options: float) -> IndexWatch:
    return IndexWatch(upkeep.store, upkeep.checks, upkeep.clock, WatchOptions(**{"confirm_s": 0.0, **options}))  # type: ignore[arg-type]


def codes(watch: IndexWatch) -> dict[str, list[str]]:
    return {backend: [problem.code for problem in problems] for backend, problems in watch.problems.items()}


async def test_level_indexes_have_no_problem() -> None:
    watch = watch_of(await an_upkeep(*IDS))
    await watch.look()
    assert codes(watch) == {"vector_index": [], "text_index": []}


async def test_a_broken_index_is_told_of_until_it_is_mended(caplog: pytest.LogCaptureFixture) -> None:
    upkeep = await an_upkeep(*IDS)
    entry = upkeep.index[VECTOR].entries.pop(IDS[0])
    watch = watch_of(upkeep)
    with caplog.at_level(logging.WARNING, "memplane.dataplane.index_watch"):
        await watch.look()
        await watch.look()
    assert codes(watch) == {"vector_index": [INDEX_INCONSISTENT], "text_index": []}
    assert "holds 9 of 10 memories" in watch.problems["vector_index"][0].message
    assert len(caplog.records) == 1
    upkeep.index[VECTOR].entries[IDS[0]] = entry
    await watch.look()
    assert codes(watch) == {"vector_index": [], "text_index": []}


async def test_what_a_second_look_does_not_find_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    upkeep = await an_upkeep(*IDS)
    entry = upkeep.index[VECTOR].entries.pop(IDS[0])

    def mended(_name: str, _what: str) -> None:
        upkeep.index[VECTOR].entries[IDS[0]] = entry

    watch = IndexWatch(upkeep.store, upkeep.checks, upkeep.clock, WatchOptions(confirm_s=0.0), mended)
    with caplog.at_level(logging.WARNING, "memplane.dataplane.index_watch"):
        await watch.look()
    assert codes(watch) == {"vector_index": [], "text_index": []}
    assert not caplog.records


async def test_what_is_told_is_looked_at_again_soon() -> None:
    upkeep = await an_upkeep(*IDS)
    entry = upkeep.index[VECTOR].entries.pop(IDS[0])
    watch = watch_of(upkeep, delay_s=0.0, interval_s=1e6, again_s=0.0)
    task = asyncio.create_task(watch.run())
    await eventually(lambda: codes(watch), lambda found: found.get("vector_index") == [INDEX_INCONSISTENT])
    upkeep.index[VECTOR].entries[IDS[0]] = entry
    await eventually(lambda: codes(watch), lambda found: found.get("vector_index") == [])
    task.cancel()


async def test_an_index_with_wrong_memories_is_suspected() -> None:
    upkeep, suspected = await an_upkeep(*IDS), list[tuple[str, str]]()
    del upkeep.index[TEXT].entries[IDS[0]]
    options = WatchOptions(confirm_s=0.0)
    watch = IndexWatch(
        upkeep.store, upkeep.checks, upkeep.clock, options, lambda name, what: suspected.append((name, what))
    )
    await watch.look()
    await watch.look()
    assert suspected == [(TEXT, "of 10 memories looked at 1 are wrong")]


async def test_an_index_that_does_not_follow_is_behind() -> None:
    upkeep = await an_upkeep(*IDS)
    await upkeep.remember("mem_late")
    watch = watch_of(upkeep)
    await watch.look()
    assert codes(watch) == {"vector_index": [], "text_index": []}
    upkeep.clock.time_us += 301_000_000
    await watch.look()
    assert codes(watch) == {"vector_index": [INDEX_BEHIND], "text_index": [INDEX_BEHIND]}


async def test_an_index_that_is_being_built_is_passed_over() -> None:
    upkeep = await an_upkeep(*IDS, names=(VECTOR, NEXT, TEXT))
    upkeep.index[NEXT].entries.clear()
    watch = watch_of(upkeep)
    await watch.look()
    assert codes(watch) == {"vector_index": [], "text_index": []}


async def test_an_index_that_is_down_ends_no_watch() -> None:
    upkeep = await an_upkeep(*IDS)
    upkeep.index[VECTOR].down = 1
    watch = watch_of(upkeep, delay_s=0.0, interval_s=0.0)
    task = asyncio.create_task(watch.run())
    for _ in range(1_000):
        await asyncio.sleep(0)
        if watch.problems:
            break
    task.cancel()
    assert codes(watch) == {"vector_index": [], "text_index": []}
