"""A small disk fills and empties, for root and for everybody else."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.disk import SmallDisk

GROWS = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    for line in sys.stdin:
        try:
            file.write(b"x" * 65536)
            print(0, flush=True)
        except OSError as error:
            print(error.errno, flush=True)
"""


def grow(child: subprocess.Popen[str]) -> int:
    """Writes 64 KiB; 0 or the errno."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("more\n")
    child.stdin.flush()
    return int(child.stdout.readline())


@pytest.mark.parametrize("is_mounted", [True, False])
def test_a_full_disk_refuses_and_an_emptied_one_takes(tmp_path: Path, is_mounted: bool) -> None:
    disk = SmallDisk.mounted(tmp_path / "disk") if is_mounted else SmallDisk(tmp_path, is_mounted=False)
    if disk.is_mounted != is_mounted:
        pytest.skip(f"no tmpfs may be mounted here by user {os.geteuid()}")
    command = [sys.executable, "-c", GROWS, str(disk.folder / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert grow(child) == 0
            disk.fill(child.pid)
            assert errno.ENOSPC in {grow(child), grow(child)} or grow(child) == errno.EFBIG
            disk.free(child.pid)
            assert grow(child) == 0
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait(10)
            disk.close()
