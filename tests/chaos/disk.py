"""A disk that can be full: a tmpfs of its own where mounting is allowed, else a limit on the size of files."""

import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOMY_BYTES = 4 * 1024**3
"""A tmpfs takes memory only for what is in it."""
PAGE_BYTES = 4096
LAST_BYTES, LAST_S = 48 * 1024**2, 1.0
"""The last so much fills within so long: no disk fills faster, and who looks before it writes must be able to rely on
what it saw for a moment."""


@dataclass
class SmallDisk:
    """The disk under one folder. `is_mounted` False: it fills by RLIMIT_FSIZE on the process that writes.

    With the limit, files cannot grow above the size of the largest one, and the error is EFBIG, not ENOSPC.
    """

    folder: Path
    is_mounted: bool
    is_full: bool = False

    @classmethod
    def mounted(cls, folder: Path) -> "SmallDisk":
        """Makes the folder, on a tmpfs where that is allowed."""
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            return cls(folder, is_mounted=False)
        command = ["mount", "-t", "tmpfs", "-o", f"size={ROOMY_BYTES},mode=0700", "tmpfs", str(folder)]
        return cls(folder, subprocess.run(command, check=False, capture_output=True).returncode == 0)

    def fill(self, pid: int) -> None:
        """Nothing more fits; `pid` is the process that writes there. Blocks for LAST_S."""
        self.is_full = True
        if self.is_mounted:
            self._resize(self._used_bytes() + LAST_BYTES)
            time.sleep(LAST_S)
            while not self._resize(self._used_bytes() + PAGE_BYTES):
                continue  # more was written in between
        else:
            largest = max(
                (path.stat().st_size for path in self.folder.rglob("*") if path.is_file()), default=PAGE_BYTES
            )
            self._limit(pid, largest)

    def free(self, pid: int | None) -> None:
        """There is room again."""
        self.is_full = False
        if self.is_mounted:
            self._resize(ROOMY_BYTES)
        elif pid is not None:
            self._limit(pid, resource.RLIM_INFINITY)

    def close(self) -> None:
        """Unmounts it; what was in it is gone."""
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False, capture_output=True)

    def _used_bytes(self) -> int:
        stat = os.statvfs(self.folder)
        return (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def _resize(self, size_bytes: int) -> bool:
        """Whether all that is there fits."""
        command = ["mount", "-o", f"remount,size={size_bytes}", str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def _limit(self, pid: int, size_bytes: int) -> None:
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, hard))
