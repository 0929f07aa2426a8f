"""Reads a policy folder: every document of one moment, or a typed error."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controlplane.documents import (
    EXTENSIONS,
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENTS,
    MAX_SET_BYTES,
    Document,
    name_problem,
)

__all__ = ["Document", "FolderUnreadable", "read_folder"]


@dataclass
class FolderUnreadable(Exception):
    """A policy folder, or a file in it, that cannot be read. `file` is empty when it is the folder itself."""

    folder: str
    file: str
    detail: str

    def __str__(self) -> str:
        where = f"{self.folder}/{self.file}" if self.file else self.folder
        return f"cannot read {where}: {self.detail}"


def read_folder(path: Path) -> list[Document]:
    """The YAML documents of a folder in the order of names; dot files, other files and subfolders are left out.

    The folder's real path is resolved once, and so is that of a `..data` link through which Kubernetes swaps all files
    of a mounted ConfigMap: every document comes from before the swap or every one from after it. A file above
    MAX_DOCUMENT_BYTES is read one byte over, so that compiling refuses it by name.

    Raises:
        FolderUnreadable: The folder or a file is missing, unreadable, no regular file, badly named, or there are more
            than MAX_DOCUMENTS or MAX_SET_BYTES. A file that goes while it is read counts as missing: read again.
    """
    folder = str(path)
    try:
        real = _real_folder(path)
        names = sorted(_names(real))
    except OSError as error:
        raise FolderUnreadable(folder, "", error.strerror or type(error).__name__) from error
    if len(names) > MAX_DOCUMENTS:
        raise FolderUnreadable(folder, "", f"{len(names)} documents; at most {MAX_DOCUMENTS}")
    return list(_documents(folder, real, names))


def _real_folder(path: Path) -> Path:
    data = path / "..data"
    return (data if data.is_dir() else path).resolve(strict=True)


def _names(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.suffix in EXTENSIONS and not entry.name.startswith(".") and not entry.is_dir():
            yield entry.name


def _documents(folder: str, real: Path, names: list[str]) -> Iterator[Document]:
    size = 0
    for name in names:
        document = _read(folder, real, name)
        size += len(document.content)
        if size > MAX_SET_BYTES:
            raise FolderUnreadable(folder, "", f"more than {MAX_SET_BYTES} bytes of documents")
        yield document


def _read(folder: str, real: Path, name: str) -> Document:
    problem = name_problem(name)
    if problem is not None:
        raise FolderUnreadable(folder, name, problem)
    try:
        if not stat.S_ISREG((real / name).stat().st_mode):
            raise FolderUnreadable(folder, name, "not a regular file")
        with (real / name).open("rb") as file:
            return Document(name, file.read(MAX_DOCUMENT_BYTES + 1))
    except OSError as error:
        raise FolderUnreadable(folder, name, error.strerror or type(error).__name__) from error
