"""Each test runs on every adapter of the port."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.ports import RecordStore
from tests.contract.builders import INDEX, fields_of
from tests.postgres import open_store


@pytest.fixture(params=["sqlite", "inmemory", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RecordStore]:
    opened: RecordStore
    if request.param == "sqlite":
        opened = await SqliteRecordStore.open(tmp_path / "records.db", options=SqliteOptions(), fields_of=fields_of)
    elif request.param == "postgres":
        opened = await open_store(request.getfixturevalue("postgres_options"), fields_of)
    else:
        opened = InMemoryRecordStore(fields_of)
    await opened.register_index(INDEX, asyncio.get_running_loop().time() + 30)
    yield opened
    await opened.close()


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 30
