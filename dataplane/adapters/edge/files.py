"""Small JSON files that are whole whenever a process is killed, and large ones brought to the disk."""

import json
import os
from pathlib import Path

COMING = ".next"
"""Ends the name of a file that is being written."""
LARGE_BYTES = 2 * 1024 * 1024
"""From here on: Edge's log, and its pages of vectors, payloads and postings; all else is 1 MiB or less."""


def write_whole(path: Path, content: object) -> None:
    """Replaces a file durably by one rename. Raises OSError."""
    write_coming(path, content)
    put_in_force(path)
    sync_folder(path.parent)


def write_coming(path: Path, content: object) -> None:
    """Writes down, durably, what `put_in_force` makes the file's content. Raises OSError."""
    with coming(path).open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())


def put_in_force(path: Path) -> None:
    """Makes what was written last the file's content. Raises OSError."""
    coming(path).replace(path)


def coming(path: Path) -> Path:
    """Where the next content of a file is written."""
    return path.with_name(path.name + COMING)


def sync_folder(folder: Path) -> None:
    """Makes renames in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_large(folder: Path) -> None:
    """Has the disk take what was written to the files of LARGE_BYTES or more below a folder. Raises OSError."""
    _sync_below(folder, LARGE_BYTES)


def sync_all(folder: Path) -> None:
    """Has the disk take what was written to files below a folder. Raises OSError."""
    _sync_below(folder, 0)


def _sync_below(folder: Path, least_bytes: int) -> None:
    for inside, _, names in os.walk(folder):
        for name in names:
            _sync_from(f"{inside}/{name}", least_bytes)


def _sync_from(path: str, least_bytes: int) -> None:
    try:
        if os.stat(path).st_size < least_bytes:
            return
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # put in another's place
    try:
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
