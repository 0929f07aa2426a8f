"""Room on the disk under an index, looked at before each write.

Edge's files are mapped into memory and mostly holes: 112 MiB of them in a new shard, 88 to 144 MiB in one of up to
20,000 points of 384 dimensions, and 7 MiB behind a new one (0.9.0, measured 2026-11). Writing into a hole for which the
disk has no block ends the process by SIGBUS, which no handler survives. So nothing is written where another program
could fill the disk within the milliseconds that a slice takes.
"""

import os
from pathlib import Path

from dataplane.errors import BackendUnavailable

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""A slice of the largest memories is 16 MB, written twice, to the log and to its place; a new shard takes 7 MiB. The
rest is for others who write meanwhile."""


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
