"""What each plane's process needs of the system: the clock, a lock on its folder, signals, a ready file."""

import asyncio
import ctypes
import fcntl
import json
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

OURS = "memplane"
"""How the names of our own loggers begin. Libraries may log every call, with its address and what stands in it."""
WORDY = ("elastic_transport", "psycopg.pool")
"""Libraries that warn of every failed call, of which our own modules tell once."""

STOPPING = (signal.SIGTERM, signal.SIGINT)
PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


class FolderInUse(Exception):
    """Another process works on the folder."""


class SystemClock:
    """The time of day."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000


def log_to_stderr() -> None:
    """Logs what matters to stderr: of our own modules from INFO on, of libraries warnings alone, or errors."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger(OURS).setLevel(logging.INFO)
    for name in WORDY:
        logging.getLogger(name).setLevel(logging.ERROR)


def lock_folder(folder: Path, owner: str) -> IO[bytes]:
    """Holds a folder, made if missing, until closed; the system lets go of it when the process dies.

    The lock file names the process. Raises FolderInUse.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = (folder / "lock").open("a+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = _holder_of(file)
        file.close()
        raise FolderInUse(f"another {owner}{holder} works on {folder}") from error
    with suppress(OSError):  # a full disk: the lock holds without a name, too
        file.truncate(0)
        file.write(str(os.getpid()).encode())
    return file


def _holder_of(file: IO[bytes]) -> str:
    file.seek(0)
    pid = file.read(20)
    return f" (process {pid.decode()})" if pid.isdigit() else ""


def announce(ready_file: Path | None, address: str) -> None:
    """Writes `{"address", "pid"}` to the ready file, whole or not at all."""
    if ready_file is None:
        return
    draft = ready_file.with_name(ready_file.name + ".new")
    draft.write_text(json.dumps({"address": address, "pid": os.getpid()}))
    draft.replace(ready_file)


def say_ready(how: str, name: str, address: str) -> None:
    """Says on stdout where a plane serves: `json` as in the ready file, `text` for people, `none` not at all."""
    if how == "json":
        sys.stdout.write(json.dumps({"address": address, "pid": os.getpid()}, indent=2) + "\n")
    elif how == "text":
        sys.stdout.write(f"{name} plane serves on {address}\n")
    sys.stdout.flush()


def told_to_stop() -> asyncio.Event:
    """An event of the running loop that SIGTERM and SIGINT set; to be made before anybody hears of the process.

    The second signal ends the process at once, as kill -9 does: whoever sends it has waited long enough.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        told.set()
        for number in STOPPING:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in STOPPING:
        loop.add_signal_handler(number, tell)
    return told


def end_with_parent(parent_pid: int) -> None:
    """Has the system send SIGTERM when the process that started this one dies; on Linux, elsewhere nothing happens.

    `parent_pid` is that process, 0 for none: if it is gone already, the signal comes at once.
    """
    if not parent_pid or sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)
