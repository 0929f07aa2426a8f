"""When a purge may merge and when it may say that it is done, by answers that no test server can be brought to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dataplane.adapters.elasticsearch.connection import Connection
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.purging import Purging
from dataplane.errors import BackendUnavailable, NotYet
from tests.unit.dataplane.adapters.elasticsearch.scripted import ScriptedElasticsearch, scripted

GREEN = {"status": "green"}
DONE = {"_shards": {"total": 1, "successful": 1, "failed": 0}}
FAILED = {"_shards": {"total": 2, "successful": 1, "failed": 1}}
SETTLED = [(200, GREEN), (200, DONE), (200, DONE)]
MERGED = [(200, DONE), (200, DONE), (200, DONE)]


def segments(merge: str = "", **deleted: int) -> tuple[int, Any]:
    """Of one copy: how many deleted documents each holds, and the merge that reads them."""
    merging = {"merge_id": merge} if merge else {}
    held = {name: {"num_docs": 9, "deleted_docs": number, **merging} for name, number in deleted.items()}
    copy = {"routing": {"node": "n"}, "segments": held}
    return 200, {**DONE, "indices": {"i": {"shards": {"0": [copy]}}}}


def stats(*, last: int, leases: tuple[int, ...], committed: int = 99, known: int = 99) -> tuple[int, Any]:
    """Of one copy: its last operation, what its leases keep from on, and merges that run."""
    copy = {
        "seq_no": {"max_seq_no": last, "global_checkpoint": known},
        "retention_leases": {"leases": [{"retaining_seq_no": kept} for kept in leases]},
        "commit": {"user_data": {"local_checkpoint": str(committed)}},
    }
    return 200, {**DONE, "indices": {"i": {"shards": {"0": [copy]}}}}


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


@asynccontextmanager
async def purging(server: ScriptedElasticsearch) -> AsyncIterator[Purging]:
    connection = Connection.create(ElasticsearchOptions(hosts=(server.url,)))
    try:
        yield Purging(connection, "alias")
    finally:
        await connection.close()


async def run(server: ScriptedElasticsearch) -> None:
    async with purging(server) as purge:
        await purge.run(soon())


async def test_it_merges_when_nothing_keeps_what_was_deleted_and_looks_whether_it_is_gone() -> None:
    kept = stats(last=5, leases=(6,))
    async with scripted(*SETTLED, segments(_0=1), kept, kept, segments(_0=1), *MERGED, segments(_1=0)) as server:
        await run(server)
    assert [line.rpartition("/")[2] for line in server.asked] == [
        *("alias", "_flush", "_refresh", "_segments", "merge"),
        *("merge", "_segments", "_forcemerge", "_flush", "_refresh", "_segments"),
    ]


@pytest.mark.parametrize(
    ("copy", "problem"),
    [
        (stats(last=5, leases=(6, 5)), "still keeps what was written"),
        (stats(last=5, leases=(6,), committed=4), "still keeps what was written"),
        (stats(last=5, leases=(6,), known=4), "still keeps what was written"),
    ],
)
async def test_it_does_not_merge_in_vain(copy: tuple[int, Any], problem: str) -> None:
    async with scripted(*SETTLED, segments(_0=1), copy, copy) as server:
        with pytest.raises(NotYet, match=problem):
            await run(server)
    assert not any("_forcemerge" in line for line in server.asked)


async def test_what_is_deleted_after_it_was_asked_for_does_not_keep_it_from_its_end() -> None:
    early, later = stats(last=5, leases=(3,)), stats(last=50, leases=(6,))
    first = [*SETTLED, segments(_0=1, _1=0), early, early]
    async with (
        scripted(*first, *SETTLED, later, segments(_0=1), *MERGED, segments(_1=4, _7=2)) as server,
        purging(server) as purge,
    ):
        with pytest.raises(NotYet):
            await purge.run(soon())
        await purge.run(soon())


async def test_it_waits_for_merges_that_began_before_and_not_for_later_ones() -> None:
    free = stats(last=5, leases=(6,))
    first = [*SETTLED, segments(_0=1), free, free, segments("early", _0=1)]
    second = [*SETTLED, free, segments("early", _0=1)]
    third = [*SETTLED, free, segments("later", _2=1), *MERGED, segments("later", _2=1)]
    async with scripted(*first, *second, *third) as server, purging(server) as purge:
        for _ in range(2):
            with pytest.raises(NotYet, match="merges segments"):
                await purge.run(soon())
        await purge.run(soon())


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([*MERGED, segments(_0=1)], "leaves deleted documents in 1 segments"),
        ([(200, FAILED)], "1 shards of Elasticsearch fail"),
    ],
)
async def test_a_merge_that_does_not_rewrite_all_is_no_purge(answers: list[tuple[int, Any]], problem: str) -> None:
    free = stats(last=5, leases=(6,))
    async with scripted(*SETTLED, segments(_0=1), free, free, segments(_0=1), *answers) as server:
        with pytest.raises(BackendUnavailable, match=problem):
            await run(server)


async def test_an_index_without_all_its_shards_is_not_purged() -> None:
    async with scripted((200, {"status": "red"})) as server:
        with pytest.raises(BackendUnavailable, match="shards of the index lie on no node"):
            await run(server)
