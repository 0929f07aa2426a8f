"""A shard as it was made, without a point, as a value that fits a JSON file: 24 KB for 129 to 162 MiB of files.

Making a shard has Edge write into holes, and sync 200 times while it holds the interpreter. Laying a blank out and
loading it does neither: a full disk is an OSError, and waiting is for a thread (0.9.0, measured 2026-11).
"""

import base64
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

PAGE_BYTES = 4096

Blank = dict[str, list[list[int | str]]]
"""By file, its size with an empty text, then the offsets of its pages that are not all zero, with what they hold."""


class _Page(NamedTuple):
    offset: int
    content: bytes


def taken_from(shard: Path) -> Blank:
    """The blank of a shard that was just made. Raises OSError."""
    return {str(path.relative_to(shard)): _rows_of(path) for path in shard.rglob("*") if path.is_file()}


def lay_out(blank: Blank, shard: Path) -> None:
    """Writes a blank's files, each with blocks for all of its bytes. Raises OSError, ValueError."""
    for name, ((size_bytes, _), *pages) in blank.items():
        path = shard / name
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if int(size_bytes):
                os.posix_fallocate(descriptor, 0, int(size_bytes))
            for offset, content in pages:
                os.pwrite(descriptor, base64.b64decode(str(content)), int(offset))
        finally:
            os.close(descriptor)


def _rows_of(path: Path) -> list[list[int | str]]:
    with path.open("rb") as file:
        rows: list[list[int | str]] = [[os.fstat(file.fileno()).st_size, ""]]
        rows += [[page.offset, base64.b64encode(page.content).decode()] for page in _pages_of(file)]
        return rows


def _pages_of(file: BinaryIO) -> Iterator[_Page]:
    """The pages that are not all zero, found without reading holes where the file system tells them."""
    start = 0
    while (offset := _data_from(file, start)) is not None:
        file.seek(offset)
        content = file.read(PAGE_BYTES)
        if content.strip(b"\0"):
            yield _Page(offset, content)
        start = offset + len(content)


def _data_from(file: BinaryIO, offset: int) -> int | None:
    try:
        return os.lseek(file.fileno(), offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None  # only a hole, or nothing, is left
