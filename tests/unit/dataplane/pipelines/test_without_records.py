"""Whether a search could be answered without the record store."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dataplane.errors import BackendUnavailable
from dataplane.pipelines.without_records import WithoutRecords


class Index:
    """Counts as told; None: it does not answer."""

    def __init__(self, entries: int | None):
        self._entries = entries

    async def count(self, _deadline_s: float) -> int:
        if self._entries is None:
            raise BackendUnavailable("an index", "down")
        return self._entries


class Tombstones:
    """All of them can be relied on."""

    async def relied_on(self, _deadline_s: float) -> str:
        return "continuity"


async def check(vectors: int | None, texts: int | None, unlevel: tuple[str, ...] = ()) -> None:
    spaces = SimpleNamespace(current=SimpleNamespace(vectors=Index(vectors)))
    parts: Any = (None, spaces, Index(texts), SimpleNamespace(unlevel=unlevel), Tombstones())
    await cast(WithoutRecords, WithoutRecords(*parts)).check(asyncio.get_running_loop().time() + 5)


@pytest.mark.parametrize(("vectors", "texts"), [(3, 3), (3, None), (None, 3), (0, 3)])
async def test_one_index_that_has_memories_suffices(vectors: int | None, texts: int | None) -> None:
    await check(vectors, texts)


@pytest.mark.parametrize(("vectors", "texts"), [(None, None), (0, 0), (0, None)])
async def test_an_index_that_is_down_or_empty_is_no_way_to_answer(vectors: int | None, texts: int | None) -> None:
    with pytest.raises(BackendUnavailable, match="no index can stand in"):
        await check(vectors, texts)


async def test_an_index_that_is_being_rebuilt_is_none_either() -> None:
    with pytest.raises(BackendUnavailable, match="no index can stand in"):
        await check(None, 3, unlevel=("text_index",))
