import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dataplane.adapters.elasticsearch.bulk import BulkWriter, deleting, document_id, indexing
from dataplane.adapters.elasticsearch.connection import Connection
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.model import IndexEntry, IndexKey, Pool
from tests.unit.dataplane.adapters.elasticsearch.scripted import SECRET, error, items, scripted


def later() -> float:
    return asyncio.get_running_loop().time() + 20


def entry(memory_id: str, version: int = 3, size: int = 1) -> IndexEntry:
    return IndexEntry(memory_id, version, "dept.a", Pool.PRIVATE, {}, None, ("word",) * size)


@asynccontextmanager
async def writer(url: str, max_bytes: int = 10**6, max_items: int = 100) -> AsyncIterator[BulkWriter]:
    connection = Connection.create(ElasticsearchOptions(hosts=(url,)))
    yield BulkWriter(connection, "alias", max_bytes, max_items)
    await connection.close()


THREE = [indexing(entry(name)) for name in ("one", "two", "three")]
OK = ("index", 201, "")
CONFLICT = ("index", 409, "version_conflict_engine_exception")


async def test_what_can_be_written_is_and_what_cannot_is_named_without_its_content() -> None:
    answer = items(OK, ("index", 400, "document_parsing_exception"), OK)
    async with scripted((200, answer)) as server, writer(server.url) as bulk:
        with pytest.raises(EntriesRefused) as refused:
            await bulk.write(THREE, later())
    assert dict(refused.value.reasons) == {"two": "Elasticsearch refuses it (document_parsing_exception)"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "es_rejected_execution_exception"),
        (503, "unavailable_shards_exception"),
        (403, "cluster_block_exception"),
        (404, "index_not_found_exception"),
        (500, "null_pointer_exception"),
    ],
)
async def test_an_item_that_may_pass_another_time_makes_the_batch_be_tried_again(status: int, kind: str) -> None:
    first = items(OK, ("index", status, kind))
    async with scripted((200, first), (200, items(OK))) as server, writer(server.url, max_items=2) as bulk:
        with pytest.raises(BackendUnavailable, match=f"{status} {kind}"):
            await bulk.write(THREE, later())
        assert len(server.asked) == 2, "the rest is sent all the same"


async def test_trouble_comes_before_refusals_so_that_the_batch_is_tried_again() -> None:
    answer = items(("index", 400, "x_content_parse_exception"), ("index", 429, "busy"), OK)
    async with scripted((200, answer)) as server, writer(server.url) as bulk:
        with pytest.raises(BackendUnavailable):
            await bulk.write(THREE, later())


async def test_a_server_that_is_overloaded_as_a_whole_is_unavailable_and_its_text_stays_out() -> None:
    async with scripted((429, error("circuit_breaking_exception"))) as server, writer(server.url) as bulk:
        with pytest.raises(BackendUnavailable) as failure:
            await bulk.write(THREE, later())
    assert "overloaded" in str(failure.value)
    assert SECRET not in str(failure.value)


async def test_a_request_that_is_too_large_is_halved() -> None:
    halves = (200, items(OK)), (200, items(OK, OK))
    async with scripted((413, {}), *halves) as server, writer(server.url) as bulk:
        await bulk.write(THREE, later())
        assert [body.count('"payload_terms"') for body in server.bodies] == [3, 1, 2]


async def test_one_entry_that_is_too_large_is_refused() -> None:
    async with scripted((413, {})) as server, writer(server.url) as bulk:
        with pytest.raises(EntriesRefused) as refused:
            await bulk.write(THREE[:1], later())
    assert dict(refused.value.reasons) == {"one": "Elasticsearch refuses it (413)"}


async def test_requests_end_at_bytes_and_at_documents() -> None:
    async with scripted((200, items(OK, OK)), (200, items(OK))) as server, writer(server.url, max_items=2) as bulk:
        await bulk.write(THREE, later())
        assert [body.count("external_gte") for body in server.bodies] == [2, 1]
    size = THREE[0].size_bytes
    async with scripted((200, items(OK))) as server, writer(server.url, max_bytes=size + 20) as bulk:
        await bulk.write(THREE, later())
        assert all(len(body.encode()) <= size + 20 for body in server.bodies)
        assert len(server.bodies) == 3


async def test_nothing_to_write_asks_nothing() -> None:
    async with scripted((200, items())) as server, writer(server.url) as bulk:
        await bulk.write([], later())
        assert server.asked == []


async def test_a_newer_version_stays() -> None:
    held = {"docs": [{"found": True, "_seq_no": 7, "_primary_term": 1, "_source": {"version": 4}}]}
    async with scripted((200, items(CONFLICT)), (200, held)) as server, writer(server.url) as bulk:
        await bulk.write(THREE[:1], later())
        assert server.asked == ["PUT /alias/_bulk", "POST /alias/_mget"]


async def test_what_conflicts_with_a_tombstone_is_made_anew() -> None:
    answers = (200, items(CONFLICT)), (200, {"docs": [{"found": False}]}), (200, items(("create", 201, "")))
    async with scripted(*answers) as server, writer(server.url) as bulk:
        await bulk.write(THREE[:1], later())
        assert json.loads(server.bodies[2].splitlines()[0]) == {"create": {"_id": "one", "routing": "dept.a"}}


async def test_what_others_go_on_writing_is_left_to_the_next_try() -> None:
    answers = [(200, items(CONFLICT)), (200, {"docs": [{"found": False}]})] * 4
    async with scripted(*answers) as server, writer(server.url) as bulk:
        with pytest.raises(BackendUnavailable, match="others write"):
            await bulk.write(THREE[:1], later())


async def test_deleting_what_is_not_there_is_fine_but_without_an_index_it_is_not() -> None:
    item = deleting(IndexKey("one", "dept.a"))
    async with scripted((200, items(("delete", 404, "")))) as server, writer(server.url) as bulk:
        await bulk.write([item], later())
    gone = items(("delete", 404, "index_not_found_exception"))
    async with scripted((200, gone)) as server, writer(server.url) as bulk:
        with pytest.raises(BackendUnavailable, match="lost the index"):
            await bulk.write([item], later())


async def test_a_server_that_hangs_is_unavailable_at_the_deadline() -> None:
    async with scripted((200, items(OK))) as server, writer(server.url) as bulk:
        server.hangs = True
        with pytest.raises(BackendUnavailable, match="does not answer in time"):
            await bulk.write(THREE, asyncio.get_running_loop().time() + 0.05)
        server.released.set()


async def test_nobody_answering_is_unavailable() -> None:
    async with scripted((200, {})) as server:
        url = server.url
    async with writer(url) as bulk:
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            await bulk.write(THREE, later())


def test_long_ids_are_hashed() -> None:
    assert document_id("x" * 512) == "x" * 512
    assert len(document_id("键" * 171)) == 65
