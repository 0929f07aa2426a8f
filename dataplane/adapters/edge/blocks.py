"""Blocks on the disk for all of a shard's files, so that the writes that Edge makes into them find room.

Edge maps its files into memory, and they are mostly holes: a new shard of vectors has 129 MiB of files and 0.1 MiB of
blocks, one of texts 162 MiB (0.9.0, measured 2026-11). Writing into a hole for which a full disk has no block ends the
process by SIGBUS, which no handler survives. So every hole is filled before the next write, and a full disk is an error
here. What Edge adds *within* a write, a file of 32 MiB for each 15,000 to 30,000 memories, has holes until that write
is over: see `room` for what is left free for it.
"""

import os
from pathlib import Path

from dataplane.errors import BackendUnavailable

LOOK_EVERY = 64
"""Writes between two looks at every file, for one that grew without a new one beside it: a file of Edge's that does so
grows by 1 MiB for each 65,536 points, of which so many writes fill 16 KiB."""


class FileBlocks:
    """The blocks of the files in a shard's folder. Not for several threads at once, nor while somebody writes there."""

    def __init__(self, folder: Path, backend: str):
        self._folder = folder
        self._backend = backend
        self._changed_ns: dict[str, int] = {}  # by folder, when a file came or went there
        self._sizes: dict[str, int] = {}  # by file, up to where it has blocks
        self._looks_in = 0

    def fill(self) -> None:
        """Fills the holes. Takes 0.1 ms where no file came; raises BackendUnavailable when the disk is full."""
        self._looks_in -= 1
        if self._looks_in >= 0 and not self._have_files_come():
            return
        self._looks_in = 0  # until all is well
        try:
            self._fill_all()
        except OSError as error:
            # No figure that changes: who is told the same again does not log it again.
            raise BackendUnavailable(self._backend, f"no room for its files: {error.strerror}") from error
        self._looks_in = LOOK_EVERY

    def _have_files_come(self) -> bool:
        try:
            return any(os.stat(folder).st_mtime_ns != then for folder, then in self._changed_ns.items())
        except FileNotFoundError:
            return True

    def _fill_all(self) -> None:
        changed_ns: dict[str, int] = {}
        for folder, _, names in os.walk(self._folder):
            changed_ns[folder] = os.stat(folder).st_mtime_ns
            for name in names:
                self._fill_file(f"{folder}/{name}")
        self._changed_ns = changed_ns

    def _fill_file(self, path: str) -> None:
        try:
            found = os.stat(path)
            if found.st_size > self._sizes.get(path, 0):
                if found.st_blocks * 512 < found.st_size:
                    _allocate(path, found.st_size)
                self._sizes[path] = found.st_size
        except FileNotFoundError:  # a file beside the others, that Edge put in another's place
            self._sizes.pop(path, None)


def _allocate(path: str, size_bytes: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    finally:
        os.close(descriptor)
