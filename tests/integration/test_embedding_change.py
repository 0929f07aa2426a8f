"""The embedding model is changed while searches go on, and a data plane is killed in the middle of it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.spaces import Spaces
from dataplane.server.queries import read_search
from dataplane.stores import Stores
from memplane.client import write_request
from memplane.client.maintenance import result_of
from memplane.identity import Identity
from memplane.policy.rbac import BOOTSTRAP_ADMIN
from memplane.v1 import memory_service_pb2 as pb
from tests.contract.pgvector import with_pgvector
from tests.deadline import eventually, eventually_async
from tests.integration.upkeep_plane import (
    NEW,
    OLD,
    SNAPSHOT,
    UpkeepPlane,
    done,
    in_memory,
    on_postgres,
    over_qdrant,
    restarted,
    upkeep_plane,
)

log = logging.getLogger("memplane.tests")

COUNTS = {"embedded": 400, "in memory": 300, "qdrant": 200, "postgres": 200}
"""Memories; searches in memory look at each one in Python."""
AFTER = 20
"""Searches after the switch."""
USED: ContextVar[set[str] | None] = ContextVar("USED", default=None)
"""The models that answered the search of this context."""


def soon() -> float:
    return asyncio.get_running_loop().time() + 30


async def fill(plane: UpkeepPlane, count: int) -> None:
    """Writes distinct memories and waits until the indexes have them."""
    async with plane.memory() as client:
        requests = [
            write_request(
                "dept.sales",
                f"Order {number} by customer {number % 97} is worth {number * 31} dollars",
                session_id="s",
                subject_id=f"customer-{number}",
            )
            for number in range(count)
        ]
        async for page in client.batch_write(requests):
            assert all(result.response.memory.id for result in page.results)
    await eventually_async(
        lambda: plane.wired.records.progress(soon()), lambda found: not any(item.due_count for item in found), 60.0
    )


def watch(plane: UpkeepPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes which models each search uses."""

    def noting(method: Callable[..., Any], model: str) -> Callable[..., Any]:
        async def noted(*arguments: Any, **named: Any) -> Any:
            used = USED.get()
            if used is not None:
                used.add(model)
            return await method(*arguments, **named)

        return noted

    for space in plane.stores.spaces.all:
        monkeypatch.setattr(space.vectors, "search", noting(space.vectors.search, space.model))
        monkeypatch.setattr(space.embedder, "embed_queries", noting(space.embedder.embed_queries, space.model))


async def searched(plane: UpkeepPlane, number: int, count: int) -> str:
    """Searches for what nobody asked before; the model that answered."""
    used: set[str] = set()
    USED.set(used)
    order = number % count
    query = f"What is order {order} by customer {order % 97} worth, asked for the {number}th time?"
    request = pb.SearchMemoriesRequest(namespace="dept.sales", query=query, top_k=5)
    answer = await plane.wired.pipelines.search.search(
        read_search(request), Caller(Identity(BOOTSTRAP_ADMIN), SNAPSHOT), soon()
    )
    assert answer.hits, f"search {number} found nothing"
    assert not answer.degraded.messages()
    assert len(used) == 1, used
    return used.pop()


async def search_on(plane: UpkeepPlane, count: int, stop: asyncio.Event) -> list[str]:
    """Searches one after the other until it is told to stop, and AFTER times more; the models that answered."""
    models: list[str] = []
    left = AFTER
    while left:
        left -= stop.is_set()
        models.append(await searched(plane, len(models), count))
        await asyncio.sleep(0.005)
    return models


@asynccontextmanager
async def with_models(kept: Path | PostgresOptions | Stores, models: int) -> AsyncIterator[UpkeepPlane]:
    """A plane on what is kept in a folder, a database or in memory, that knows so many of the models."""
    known = [OLD, NEW][:models]
    async with AsyncExitStack() as stack:
        shared = None
        if isinstance(kept, PostgresOptions):
            shared = await on_postgres(kept, known, stack)
        elif isinstance(kept, Stores):
            shared = restarted(kept, models)
        yield await stack.enter_async_context(upkeep_plane(kept if isinstance(kept, Path) else None, known, shared))


@pytest.fixture(params=COUNTS)
async def kind(request: pytest.FixtureRequest) -> str:
    """On which stores."""
    return str(request.param)


@pytest.fixture
async def kept(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Path | PostgresOptions | Stores]:
    """What a plane leaves behind."""
    async with AsyncExitStack() as stack:
        if kind == "postgres":
            yield with_pgvector(request.getfixturevalue("postgres_options"))
        elif kind == "qdrant":
            yield await over_qdrant(request.getfixturevalue("qdrant_peer_url"), [OLD, NEW], stack)
        else:
            yield tmp_path if kind == "embedded" else in_memory([OLD, NEW])


async def test_searches_go_on_while_the_embedding_model_is_changed(
    kind: str, kept: Path | PostgresOptions | Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_models(kept, 1) as plane:
        await fill(plane, COUNTS[kind])
    async with with_models(kept, 2) as plane, plane.maintenance() as client:
        await eventually_async(plane_is_level(plane), bool, 60.0)
        watch(plane, monkeypatch)
        stop, other = asyncio.Event(), Spaces(plane.stores.spaces.all)
        searching = asyncio.create_task(search_on(plane, COUNTS[kind], stop))
        operation = await done(client, await client.reindex("VECTOR", NEW.model), 120.0)
        stop.set()
        models = await searching
        assert (result_of(operation).index_count, result_of(operation).activated) == (COUNTS[kind], True)
        await other.look(soon())
        assert other.current.model == NEW.model, "another process does not hear of the switch"
        switch = models.index(NEW.model)
        assert switch > 0
        assert set(models[:switch]) == {OLD.model}
        assert set(models[switch:]) == {NEW.model}
        checks = (await client.check_indexes("VECTOR", full=True)).checks
        assert {check.active: check.consistent for check in checks} == {True: True, False: True}
        seconds = result_of(operation).duration.ToMilliseconds() / 1000
        log.info("%s: %d searches before, %d after the switch, %.2f s", kind, switch, len(models) - switch, seconds)
    async with with_models(kept, 2) as plane:
        assert plane.stores.spaces.current.model == NEW.model


def plane_is_level(plane: UpkeepPlane) -> Callable[[], Any]:
    async def is_level() -> bool:
        return not plane.wired.projectors.unlevel

    return is_level


async def test_what_is_written_while_the_model_is_changed_is_in_the_new_index(tmp_path: Path) -> None:
    async with upkeep_plane(tmp_path, [OLD]) as plane:
        await fill(plane, 300)
    async with (
        upkeep_plane(tmp_path, [OLD, NEW]) as plane,
        plane.memory() as memory,
        plane.maintenance() as maintenance,
    ):
        await eventually_async(plane_is_level(plane), bool, 60.0)
        acknowledged: list[str] = []
        stop = asyncio.Event()

        async def write_on() -> None:
            while not stop.is_set():
                content = f"Crate {len(acknowledged)} came while the model was changed"
                acknowledged.append((await memory.write("dept.sales", content, session_id="s")).memory.id)

        writing = asyncio.create_task(write_on())
        await done(maintenance, await maintenance.reindex("VECTOR", NEW.model), 120.0)
        after = len(acknowledged)
        await eventually(lambda: len(acknowledged), lambda count: count > after + AFTER)
        stop.set()
        await writing
        assert plane.wired.stores.spaces.current.model == NEW.model
        assert after > 0
        assert all(acknowledged)
        await eventually_async(
            lambda: plane.wired.records.progress(soon()), lambda found: not any(item.due_count for item in found), 60.0
        )
        held = await plane.wired.stores.spaces.current.vectors.versions(soon())
        assert len(held) == 300 + len(acknowledged)
        assert held.keys() >= set(acknowledged)
