"""One Edge shard on disk: made, loaded, written to and closed.

Edge (0.9.0) holds the interpreter in every call, also where it waits for the disk: making a shard syncs its files 70
times, indexing each field 25 times, a flush 63 times, closing 29 to 68 times. So it is made step by step, and before a
flush or a close `settle` brings the large files to the disk without holding anybody: little is left to wait for (all
measured 2026-11).
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from qdrant_edge import EdgeConfig, EdgeShard, FloatIndexParams, KeywordIndexParams, UpdateOperation

from dataplane.adapters.edge import files
from dataplane.adapters.edge.blocks import FileBlocks
from dataplane.adapters.payload_filters import RANGE_FIELDS
from dataplane.errors import BackendUnavailable

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """What a shard is made of. A shard on disk made to another `identity` is thrown away."""

    backend: str
    identity: Mapping[str, str | int]
    config: EdgeConfig


class Engine:
    """An open Edge shard. Only `shard`'s reads may be called meanwhile; Edge's failures are BackendUnavailable."""

    def __init__(self, spec: ShardSpec, path: Path, shard: EdgeShard, blocks: FileBlocks):
        self.shard = shard
        self.path = path
        self._spec = spec
        self._blocks = blocks

    @classmethod
    def create(cls, path: Path, spec: ShardSpec) -> "Engine":
        """A new one in an empty folder; its fields are indexed by `field_updates`. What fails leaves no folder."""
        try:
            shard = guarded(spec.backend, lambda: EdgeShard.create(str(path), spec.config))
        except BackendUnavailable:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return cls(spec, path, shard, FileBlocks(path, spec.backend))

    @classmethod
    def load(cls, path: Path, spec: ShardSpec) -> "Engine | None":
        """The one in a folder; None where it is unreadable. Raises BackendUnavailable when the disk is full."""
        blocks = FileBlocks(path, spec.backend)
        blocks.fill()
        try:
            return cls(spec, path, guarded(spec.backend, lambda: EdgeShard.load(str(path))), blocks)
        except BackendUnavailable:
            return None

    def update(self, operation: UpdateOperation) -> None:
        """Writes. Raises BackendUnavailable when the disk is full, before anything is written."""
        self._blocks.fill()
        guarded(self._spec.backend, lambda: self.shard.update(operation))

    def settle(self) -> None:
        """Has the disk take what was written so far to large files. Takes as long as the disk does; for a thread."""
        guarded(self._spec.backend, lambda: files.sync_large(self.path))

    def flush(self) -> None:
        """Makes every write so far durable."""
        self._blocks.fill()
        guarded(self._spec.backend, self.shard.flush)

    def close(self) -> None:
        """Closes it; what was not flushed is in Edge's log."""
        guarded(self._spec.backend, self.shard.close)

    def discard(self) -> None:
        """Closes and removes it."""
        try:
            self.close()
        finally:
            guarded(self._spec.backend, lambda: shutil.rmtree(self.path))


def field_updates() -> Iterator[UpdateOperation]:
    """What indexes the fields of a new shard, one after another."""
    yield UpdateOperation.create_field_index("namespace", KeywordIndexParams(is_tenant=True))
    for name in ("shared", "terms"):
        yield UpdateOperation.create_field_index(name, KeywordIndexParams(enable_hnsw=False))
    for name in RANGE_FIELDS:
        yield UpdateOperation.create_field_index(name, FloatIndexParams(enable_hnsw=False))


def guarded(backend: str, work: Callable[[], Result]) -> Result:
    """Edge reports failures as a bare Exception, a panic in its core as a BaseException of its own."""
    try:
        return work()
    except BackendUnavailable:
        raise
    except Exception as error:
        raise BackendUnavailable(backend, str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise BackendUnavailable(backend, f"panic: {error}") from error
