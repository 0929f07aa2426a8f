"""Compiles in another process: a large policy takes seconds of pure Python, and streams must not wait for it."""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from controlplane.case_child import CaseChild
from controlplane.compile import Compiled, compile_documents
from controlplane.documents import Document
from controlplane.trial import question, tried
from memplane.errors import Overloaded, Unavailable

log = logging.getLogger("memplane.controlplane.compiler")

MAX_WAITING = 16
"""Sets that may wait for the worker at once. Unmeasured."""


class Compiler(Protocol):
    """Turns documents into a policy, or into what is wrong with them."""

    async def compile(self, documents: Sequence[Document], *, with_cases: bool = True) -> Compiled:
        """See `controlplane.compile.compile_documents`; a golden case that does not hold refuses the set.

        Without cases: for what was accepted before, with cases that another build may see otherwise. Raises
        Unavailable when it may work later.
        """
        ...


class ProcessCompiler:
    """One worker process, started when first needed and anew when it died. `bootstrap_admin`: there is one.

    A set that takes longer than `deadline_s` costs the worker its life. Golden cases are tried in a child of its own.
    """

    def __init__(self, *, bootstrap_admin: bool, deadline_s: float = 60.0):
        self._bootstrap_admin = bootstrap_admin
        self._deadline_s = deadline_s
        self._cases = CaseChild(deadline_s)
        self._pool: ProcessPoolExecutor | None = None
        self._changing = asyncio.Lock()
        self._waiting = 0
        self._closed = False

    async def compile(self, documents: Sequence[Document], *, with_cases: bool = True) -> Compiled:
        """Compiles in the worker; calls queue up. Raises Unavailable when the worker died over it, or Overloaded."""
        if self._waiting >= MAX_WAITING:
            raise Overloaded(f"{MAX_WAITING} policy sets wait to be compiled")
        self._waiting += 1
        try:
            compiled, asked = await self._compile(documents)
            if not (asked and with_cases):
                return compiled
            return tried(compiled, await self._cases.ask(asked))
        finally:
            self._waiting -= 1

    async def _compile(self, documents: Sequence[Document]) -> tuple[Compiled, bytes]:
        pool, loop = await self._a_pool(), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._deadline_s):
                return await loop.run_in_executor(pool, _compile, list(documents), self._bootstrap_admin)
        except (BrokenProcessPool, TimeoutError) as error:
            if not self._closed:
                log.warning("the compiling process died, or took longer than %.0f s", self._deadline_s)
            await self._end(pool)
            raise Unavailable("policy compiler") from error

    async def close(self) -> None:
        """Ends the worker, also in the middle of a set; calls that run or come later raise Unavailable."""
        self._closed = True
        await self._cases.close()
        await self._end(self._pool)

    async def _a_pool(self) -> ProcessPoolExecutor:
        async with self._changing:
            if self._closed:
                raise Unavailable("policy compiler")
            if self._pool is None:
                self._pool = _new_pool()
            return self._pool

    async def _end(self, pool: ProcessPoolExecutor | None) -> None:
        """Ends a pool once, whoever asks; nobody starts another in between, whose worker would be ended with it."""
        async with self._changing:
            if pool is not None and self._pool is pool:
                await asyncio.to_thread(_end_workers, pool)
                self._pool = None


def _new_pool() -> ProcessPoolExecutor:
    # Spawned: a fork would copy gRPC's threads and locks.
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_start_worker)


def _end_workers(pool: ProcessPoolExecutor) -> None:
    """Blocking. A worker may be busy with a set that nobody waits for; the control plane has no other children."""
    for worker in multiprocessing.active_children():
        worker.kill()
    pool.shutdown()


def _compile(documents: list[Document], bootstrap_admin: bool) -> tuple[Compiled, bytes]:
    """What was compiled, and what is to be asked about its golden cases."""
    compiled = compile_documents(documents, bootstrap_admin=bootstrap_admin)
    return compiled, question(compiled)


def _start_worker() -> None:
    # The control plane decides when to stop, also at Ctrl-C, which the terminal sends to both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
