"""Commits 5,000 memories from several tasks and prints each id once it is acknowledged. Run by test_sqlite_kill."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from tests.contract.builders import INDEX, commit_of, fields_of, memory_of, vector_of

TASKS = 16
MEMORIES = 5_000


async def commit_some(store: SqliteRecordStore, ids: Iterator[str]) -> None:
    deadline_s = asyncio.get_running_loop().time() + 60
    for memory_id in ids:
        commit = commit_of(memory_of(memory_id, body=b"x" * 600), embedding=vector_of(1, 384))
        [result] = await store.commit([commit], deadline_s)
        assert result.error is None
        sys.stdout.write(f"{memory_id}\n")
        sys.stdout.flush()


async def main(path: Path, name: str) -> None:
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    await store.register_index(INDEX, asyncio.get_running_loop().time() + 60)
    ids = (f"mem_{name}_{number}" for number in range(MEMORIES))
    await asyncio.gather(*(commit_some(store, ids) for _ in range(TASKS)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
