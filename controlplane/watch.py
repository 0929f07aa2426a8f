"""Watches the policy folder and hands over what it comes to hold.

A wake on any event in the folder (quick), a poll (sure), a digest of the content, and two equal reads a moment apart.
The file events alone are not enough: a watch goes deaf when its folder is replaced, and editors write in steps.
Whatever goes wrong is counted, logged and told in `last_error`, and the watch goes on.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from watchfiles import awatch

from controlplane.documents import Document, version_of_set
from controlplane.files import FolderUnreadable, read_folder
from controlplane.revisions import FolderContent
from memplane.errors import MemPlaneError

log = logging.getLogger("memplane.controlplane.watch")

_MAX_SETTLE_READS = 10


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often to look, and how long content must hold still. The design's values; unmeasured."""

    poll_s: float = 1.0
    settle_s: float = 0.1


class FolderSink(Protocol):
    """Who takes what the folder holds."""

    @property
    def folder(self) -> FolderContent:
        """What the folder last held, as far as this sink was told."""
        ...

    async def take_folder(self, documents: Sequence[Document]) -> None:
        """Takes new content; afterwards `folder` tells of it."""
        ...


class FolderWatch:
    """Watches one folder, which may come and go. Blocking reads run off the event loop.

    `alive` is True while the watch runs. `error_count` counts unexpected faults.
    """

    def __init__(self, folder: Path, sink: FolderSink, options: WatchOptions):
        self._folder = folder
        self._sink = sink
        self._options = options
        self._wake = asyncio.Event()
        self._unreadable = ""
        self._fault = ""
        self.alive = False
        self.error_count = 0

    @property
    def last_error(self) -> str:
        """Why the folder's content is not taken; empty: it was, and nothing is wrong."""
        return self._unreadable or self._fault or self._sink.folder.refusal

    @property
    def problem(self) -> str:
        """`last_error`, or that nobody watches."""
        return self.last_error or ("" if self.alive else f"{self._folder} is not watched; restart the control plane")

    async def run(self) -> None:
        """Watches until cancelled."""
        self.alive = True
        listener = asyncio.create_task(self._listen(), name="policy-folder-events")
        try:
            while True:
                await self._wait()
                await self.look()
        finally:
            self.alive = False
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener

    async def look(self) -> None:
        """Reads the folder once, and hands over what is new. Never raises but for cancellation."""
        try:
            documents = await self._settled()
            if documents:
                await self._sink.take_folder(documents)
            self._fault = ""
        except FolderUnreadable as error:
            self._note_unreadable(str(error))
        except Exception as error:  # noqa: BLE001 - the watch must live on: counted, logged, told, tried again
            self._note_fault(error)

    async def _settled(self) -> Sequence[Document]:
        """New content that held still; empty when there is none."""
        documents = await self._read()
        for _ in range(_MAX_SETTLE_READS):
            if not documents or version_of_set(documents) == self._sink.folder.version:
                return ()
            await asyncio.sleep(self._options.settle_s)
            before, documents = documents, await self._read()
            if documents == before:
                return documents
        return ()

    async def _read(self) -> Sequence[Document]:
        documents = await asyncio.to_thread(read_folder, self._folder)
        self._note_unreadable("" if documents else f"{self._folder} holds no policy documents")
        return documents

    def _note_unreadable(self, reason: str) -> None:
        if reason and reason != self._unreadable:
            log.warning("the policy folder: %s", reason)
        self._unreadable = reason

    def _note_fault(self, error: Exception) -> None:
        self.error_count += 1
        reason = str(error) if isinstance(error, MemPlaneError) else f"{type(error).__name__}: {error}"
        if reason != self._fault:
            told = None if isinstance(error, MemPlaneError) else error
            log.error("watching the policy folder failed and goes on: %s", reason, exc_info=told)
        self._fault = reason

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.poll_s):
                await self._wake.wait()
        self._wake.clear()

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_to_one_folder()
            except Exception as error:  # noqa: BLE001 - the poll still works; counted, logged, and listened to again
                self.error_count += 1
                log.warning("no events of the policy folder, it is polled: %s: %s", type(error).__name__, error)
            await asyncio.sleep(self._options.poll_s)

    async def _listen_to_one_folder(self) -> None:
        """Wakes at every event until the path leads to another folder, or to none."""
        identity = await asyncio.to_thread(_identity, self._folder)
        if identity is None:
            return
        events = awatch(self._folder, watch_filter=None, recursive=False, rust_timeout=1000, yield_on_timeout=True)
        async with aclosing(events):
            async for changes in events:
                if changes:
                    self._wake.set()
                if await asyncio.to_thread(_identity, self._folder) != identity:
                    return


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino
