"""The last good policy on disk: the only thing that a data plane keeps between two starts."""

import os
from contextlib import suppress
from pathlib import Path

from google.protobuf.message import DecodeError

from memplane.v1 import policy_pb2

_OWNER_ONLY = 0o600


class CorruptLastGood(Exception):
    """The file is there and does not hold a signed snapshot."""


class LastGoodFile:
    """A signed snapshot in a file that is replaced whole: after a crash it holds the old one or the new one.

    Blocking; call it off the event loop. The signature is not checked here.
    """

    def __init__(self, path: Path):
        self._path = path

    def read(self) -> policy_pb2.SignedPolicySnapshot | None:
        """The stored snapshot, None when there is no file. Raises CorruptLastGood, or OSError when it is unreadable."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            signed = policy_pb2.SignedPolicySnapshot.FromString(data)
        except DecodeError as error:
            raise CorruptLastGood(f"{self._path} is not a signed snapshot") from error
        if not signed.payload or not signed.signature:
            raise CorruptLastGood(f"{self._path} holds no signed snapshot")
        return signed

    def write(self, signed: policy_pb2.SignedPolicySnapshot) -> None:
        """Stores it durably, readable by the owner only. Raises OSError, and then the old one is still there."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(self._path.name + ".new")
        try:
            _write_synced(draft, signed.SerializeToString())
            draft.replace(self._path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise
        _sync_folder(self._path.parent)


def _write_synced(path: Path, data: bytes) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
