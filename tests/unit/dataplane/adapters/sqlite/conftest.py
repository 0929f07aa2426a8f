import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from tests.contract.builders import fields_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteRecordStore]:
    opened = await SqliteRecordStore.open(path, options=SqliteOptions(busy_timeout_ms=50), fields_of=fields_of)
    yield opened
    await opened.close()


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 30
