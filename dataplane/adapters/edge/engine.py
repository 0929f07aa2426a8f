"""One Edge shard on disk: made, loaded, written to and closed.

Edge (0.9.0) holds the interpreter in every call, also where it waits for the disk: making a shard with its fields
syncs 180 times, a flush 63 times, closing 29 to 68 times, loading 6 times. So further shards are not made but laid out
from a blank and loaded; and before a flush or a close `settle` brings the large files to the disk without holding
anybody, so that little is left to wait for (all measured 2026-11).
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from qdrant_edge import EdgeConfig, EdgeShard, FloatIndexParams, KeywordIndexParams, UpdateOperation

from dataplane.adapters.edge import blank as blanks
from dataplane.adapters.edge import files
from dataplane.adapters.edge.blank import Blank
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
        """A new one in an empty folder, with its fields indexed. What fails leaves no folder."""
        try:
            shard = guarded(spec.backend, lambda: EdgeShard.create(str(path), spec.config))
        except BackendUnavailable:
            shutil.rmtree(path, ignore_errors=True)
            raise
        made = cls(spec, path, shard, FileBlocks(path, spec.backend))
        try:
            for operation in _field_updates():
                made.update(operation)
        except BaseException:
            with suppress(BackendUnavailable):
                made.discard()
            raise
        return made

    @classmethod
    def lay_out(cls, blank: Blank, path: Path, spec: ShardSpec) -> "Engine | None":
        """One as the blank was taken from, in an empty folder; None where the blank is no good.

        Raises BackendUnavailable when the disk is full. What fails leaves no folder.
        """
        try:
            blanks.lay_out(blank, path)
            files.sync_all(path)
            engine = cls.load(path, spec)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise BackendUnavailable(spec.backend, f"no room for its files: {error.strerror}") from error
        except (TypeError, ValueError):
            engine = None
        if engine is None:
            shutil.rmtree(path, ignore_errors=True)
        return engine

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
        """Closes it and removes its folder."""
        try:
            self.close()
        finally:
            guarded(self._spec.backend, lambda: shutil.rmtree(self.path))


def _field_updates() -> Iterator[UpdateOperation]:
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
