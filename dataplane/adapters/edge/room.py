"""Room on the disk under an index, looked at before each write.

What is there already has its blocks: see `blocks`. What is left is that Edge adds a file within a write and writes into
it: a page of 32 MiB for each 15,000 to 30,000 memories, and all files of an index that is opened for the first time or
cleared. Writing into a hole for which the disk has no block ends the process by SIGBUS, which no handler survives. So
nothing is written where another program could fill the disk within the milliseconds that a slice takes; one that takes
this room just while a file is added still ends the process.
"""

import os
from pathlib import Path

from dataplane.errors import BackendUnavailable

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""A slice of the largest memories is 16 MB, written twice, to the log and to its place; a new shard takes 7 MiB before
its holes are filled. The rest is for others who write meanwhile."""


class DiskRoom:
    """The room for an index in a folder, which need not be there yet."""

    def __init__(self, folder: Path, backend: str):
        self._folder = folder
        self._backend = backend

    def require(self) -> None:
        """Raises BackendUnavailable when there is too little room to write. Takes microseconds."""
        if not self.is_enough():
            # No figure that changes: who is told the same again does not log it again.
            raise BackendUnavailable(self._backend, f"the disk is full: less than {LEAST_FREE_BYTES >> 20} MiB left")

    def is_enough(self) -> bool:
        """Whether there is room to write."""
        return self._free_bytes() >= LEAST_FREE_BYTES

    def _free_bytes(self) -> int:
        """What the disk under the nearest folder that is there has left."""
        there = next(path for path in (self._folder.absolute(), *self._folder.absolute().parents) if path.exists())
        stat = os.statvfs(there)
        return stat.f_bavail * stat.f_frsize
