import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from controlplane import compiler as compiler_module
from controlplane.compile import compile_documents
from controlplane.compiler import ProcessCompiler
from controlplane.documents import Document
from memplane.errors import Overloaded, Unavailable
from tests.unit.controlplane.parts import BROKEN, policy


@pytest.fixture
async def compiler() -> AsyncIterator[ProcessCompiler]:
    made = ProcessCompiler(bootstrap_admin=True)
    yield made
    await made.close()


async def test_another_process_compiles_to_the_same(compiler: ProcessCompiler) -> None:
    for documents in (policy(7), BROKEN):
        assert await compiler.compile(documents) == compile_documents(documents, bootstrap_admin=True)


async def test_a_worker_that_died_is_told_and_replaced(compiler: ProcessCompiler) -> None:
    await compiler.compile(policy(7))
    for worker in multiprocessing.active_children():
        worker.kill()
        worker.join()
    with pytest.raises(Unavailable):
        await compiler.compile(policy(7))
    assert (await compiler.compile(policy(7))).policy is not None


async def test_a_set_that_takes_too_long_is_given_up() -> None:
    hasty = ProcessCompiler(bootstrap_admin=True, deadline_s=0.0)
    with pytest.raises(Unavailable):
        await hasty.compile(policy(7))
    await hasty.close()
    assert multiprocessing.active_children() == []


async def test_closing_ends_what_runs_and_lets_nothing_start(compiler: ProcessCompiler) -> None:
    large = [Document("a.yaml", b"write_policy:\n" + b"".join(b"  key%d: 1\n" % number for number in range(60_000)))]
    running = asyncio.create_task(compiler.compile(large))
    await asyncio.sleep(0)
    await compiler.close()
    with pytest.raises(Unavailable):
        await running
    with pytest.raises(Unavailable):
        await compiler.compile(policy(7))
    assert multiprocessing.active_children() == []


async def test_a_pool_is_ended_once_whoever_asks(compiler: ProcessCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[ProcessPoolExecutor] = []

    def end_workers(pool: ProcessPoolExecutor) -> None:
        ended.append(pool)
        end(pool)

    end = compiler_module._end_workers
    monkeypatch.setattr(compiler_module, "_end_workers", end_workers)
    large = [Document("a.yaml", b"write_policy:\n" + b"".join(b"  key%d: 1\n" % number for number in range(60_000)))]
    running = asyncio.create_task(compiler.compile(large))
    await asyncio.sleep(0)
    results = await asyncio.gather(compiler.close(), compiler.close(), running, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), type(None), Unavailable]
    assert len(ended) == 1


async def test_too_many_sets_at_once_are_refused(compiler: ProcessCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_module, "MAX_WAITING", 2)
    results = await asyncio.gather(*(compiler.compile(policy(7)) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, Overloaded) for result in results) == 3
