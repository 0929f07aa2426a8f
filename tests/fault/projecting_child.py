"""Commits, changes and erases memories while projectors follow; prints what is acknowledged.

Run by test_projector_kill.

`python -m tests.fault.projecting_child FOLDER NAME OWN|SERVER`: an index of one's own is compared with the store at the
start, one on a server (here a folder, too) is not: what was not settled is in its outbox.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.embedder import DIMENSION, HashEmbedder
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import Erasure, OutboxRow
from dataplane.codec import parse_body
from dataplane.logic.tokens import tokens
from dataplane.model import IndexEntry
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projection import Projection
from dataplane.pipelines.projector import Projector, ProjectorOptions
from dataplane.pipelines.purge import PurgeOptions
from dataplane.ports import Index
from memplane.v1 import memory_pb2
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of, vector_of

TASKS = 8
MEMORIES = 2_000


@asynccontextmanager
async def following(folder: Path, name: str, *, own: bool) -> AsyncIterator[tuple[SqliteRecordStore, list[Index]]]:
    """The stores of a folder, and projectors that have brought the indexes level."""
    async with AsyncExitStack() as stack:
        path = folder / "records.db"
        store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
        stack.push_async_callback(store.close)
        embedder = HashEmbedder()
        vectors = EdgeVectorIndex.open(folder / "vectors", DIMENSION, embedder.model)
        stack.push_async_callback(vectors.close)
        texts = EdgeTextIndex.open(folder / "texts", "words")
        stack.push_async_callback(texts.close)
        options = ProjectorOptions(owner=name, doubt_s=0.2, purge=PurgeOptions(delay_s=0.2))
        projections = [
            Projection(name="v", target="v", index=vectors, entry_of=vector_entry, embedder=embedder, own=own),
            Projection(name="t", target="t", index=texts, entry_of=text_entry, own=own, flush_interval_s=0.1),
        ]
        made = [Projector(store, projection, options) for projection in projections]
        projectors = Projectors(store, made, options)
        await projectors.start()
        yield store, [vectors, texts]
        await projectors.stop()


def vector_entry(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, embedding=row.embedding)


def text_entry(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    words = tokens(parse_body(memory).content)
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, tokens=words)


async def write_some(store: SqliteRecordStore, name: str, numbers: "asyncio.Queue[int]") -> None:
    """Creates each, changes every third and erases every fifth; prints "id version", version 0 for gone."""
    deadline_s = asyncio.get_running_loop().time() + 60
    while not numbers.empty():
        number = numbers.get_nowait()
        memory_id = f"mem_{name}_{number}"
        for version in (1, 2) if number % 3 == 0 else (1,):
            content = f"{memory_id} {version}"
            body = memory_pb2.Memory(id=memory_id, content=content).SerializeToString()
            memory = memory_of(memory_id, content=content, body=body, version=version)
            commit = commit_of(memory, expected_version=version - 1, embedding=vector_of(number, DIMENSION))
            [result] = await store.commit([commit], deadline_s)
            assert result.error is None
            acknowledge(memory_id, version)
        if number % 5 == 0:
            erasure = Erasure(scope=scope_of(), memory_id=memory_id, now_us=NOW_US, principal_id="alice")
            await store.erase(erasure, deadline_s)
            acknowledge(memory_id, 0)


def acknowledge(memory_id: str, version: int) -> None:
    sys.stdout.write(f"{memory_id} {version}\n")
    sys.stdout.flush()


async def main(folder: Path, name: str, kind: str) -> None:
    numbers: asyncio.Queue[int] = asyncio.Queue()
    for number in range(MEMORIES):
        numbers.put_nowait(number)
    async with following(folder, name, own=kind == "OWN") as (store, _):
        await asyncio.gather(*(write_some(store, name, numbers) for _ in range(TASKS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
