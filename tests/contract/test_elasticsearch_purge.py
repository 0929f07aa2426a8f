"""What was erased is gone from the disk of a real server before anybody is told so. Takes half a minute."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.changes import Erasure, OutboxRow
from dataplane.model import IndexKey
from dataplane.pipelines.purge import Purge, PurgeOptions
from tests.contract.builders import commit_of, fields_of, memory_of, scope_of
from tests.contract.index_suite import deadline, entry
from tests.contract.row_traces import row_with, traces_of
from tests.servers.elasticsearch import ElasticsearchServer

AT_REST, BUSY = "zebraquiet", "zebrabusy"
"""Words that one memory alone holds."""
RULES = {"rule-1": AT_REST, "rule-2": BUSY}
"""In which index; an index's name stands on the disk, too."""
SOON = PurgeOptions(delay_s=0.0, rest_ratio=0.0, again_s=1.0)
WITHIN_S = 75.0
"""Twice the 30 s after which a server renews its leases, and some."""


@pytest.fixture
async def indexes(elasticsearch_url: str) -> AsyncIterator[dict[str, ElasticsearchTextIndex]]:
    options = ElasticsearchOptions(hosts=(elasticsearch_url,), shards=1, replicas=0)
    opened = {word: await ElasticsearchTextIndex.open(options, name) for name, word in RULES.items()}
    yield opened
    for index in opened.values():
        await index.close()


async def test_an_erased_word_is_on_no_disk_once_the_purge_is_no_longer_due(
    indexes: dict[str, ElasticsearchTextIndex], elasticsearch_server: ElasticsearchServer
) -> None:
    purges = [await erased(index, word) for word, index in indexes.items()]
    writing = asyncio.create_task(write_and_delete(indexes[BUSY]))
    assert on_disk(elasticsearch_server, (AT_REST, BUSY)) == {AT_REST, BUSY, in_row(AT_REST), in_row(BUSY)}
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*map(purged, purges))
    assert not on_disk(elasticsearch_server, (AT_REST, BUSY))
    assert not writing.done()
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def test_a_purge_of_what_holds_nothing_deleted_is_done_at_once(
    indexes: dict[str, ElasticsearchTextIndex],
) -> None:
    await indexes[AT_REST].upsert([entry("one")], deadline())
    await indexes[AT_REST].purge(deadline())


async def erased(index: ElasticsearchTextIndex, word: str) -> Purge:
    """The purge that is due after one of 200 memories, the one with the word, was erased."""
    memory = memory_of("secret", content=word)
    others = [entry(f"mem_{number}") for number in range(199)]
    secret = entry(memory.memory_id, memory.namespace, tokens=("common", word), row=row_with(word.encode()))
    await index.upsert([*others, secret], deadline())
    await index.flush(deadline())
    store = InMemoryRecordStore(fields_of)
    await store.commit([commit_of(memory)], deadline())
    scope = scope_of(memory.namespace)
    await store.erase(
        Erasure(scope=scope, memory_id=memory.memory_id, now_us=0, principal_id="user", reason=""), deadline()
    )
    await index.delete([IndexKey(memory.memory_id, memory.namespace)], deadline())
    await index.flush(deadline())
    purge = Purge(store, "text_index:test", index, SOON)
    await purge.note([OutboxRow(2, memory.memory_id, memory.namespace, None, None)], deadline())
    return purge


async def purged(purge: Purge) -> None:
    while purge.is_due:
        await purge.run_when_due(drained=True)
        await asyncio.sleep(0.2)


async def write_and_delete(index: ElasticsearchTextIndex) -> None:
    """Goes on for ever; half of what it writes it deletes."""
    names = [f"other_{number}" for number in range(20)]
    while True:
        await index.upsert([entry(name) for name in names], deadline())
        await index.delete([IndexKey(name, "dept.a") for name in names[::2]], deadline())
        await index.flush(deadline())
        await asyncio.sleep(0.05)


def in_row(word: str) -> str:
    return f"{word} in a row"


def on_disk(server: ElasticsearchServer, words: Sequence[str]) -> set[str]:
    """Those of the words that any file of the server's data holds, and of "word in a row"."""
    found: set[str] = set()
    for file in server.process.folder.glob("*/data/indices/**/*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            held = file.read_bytes()
            found |= {word for word in words if word.encode() in held}
            found |= {in_row(word) for word in words if any(trace in held for trace in traces_of(word.encode()))}
    return found
