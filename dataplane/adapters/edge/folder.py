"""The folder of one index: its shards, and a marker that names the one in force.

The marker is replaced by one rename, so that a process killed at any moment leaves a folder whose marker names a whole
shard: the old one or the new one. Whatever else lies there was left behind and is removed.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

MARKER = "identity.json"


class ShardFolder:
    """Which shard of a folder is in force. Methods raise OSError.

    `identity`: a marker of another one counts as none.
    """

    def __init__(self, folder: Path, identity: Mapping[str, str | int]):
        self._folder = folder
        self._identity = dict(identity)

    def current(self) -> Path | None:
        """The shard in force; None when the marker is absent, unreadable or of another identity."""
        try:
            marker = json.loads((self._folder / MARKER).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        if not isinstance(marker, dict) or marker.get("identity") != self._identity:
            return None
        return self._folder / str(marker.get("shard"))

    def empty(self) -> None:
        """Removes everything: no shard is in force."""
        if self._folder.exists():
            shutil.rmtree(self._folder)

    def spare(self) -> Path:
        """An empty folder for another shard beside the one in force."""
        path = self._folder / "shard-1"
        if path == self.current():
            path = self._folder / "shard-2"
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def announce(self, shard: Path) -> None:
        """Writes down, durably, which shard `switch` puts in force."""
        with self._next.open("w", encoding="utf-8") as file:
            json.dump({"identity": self._identity, "shard": shard.name}, file)
            file.flush()
            os.fsync(file.fileno())

    def switch(self) -> None:
        """Puts the announced shard in force."""
        self._next.replace(self._folder / MARKER)

    def remove_others(self) -> None:
        """Removes what is neither the marker nor the shard in force, once the last switch is durable."""
        self._sync()
        current = self.current()
        for path in self._folder.iterdir():
            if path == current or path.name == MARKER:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    @property
    def _next(self) -> Path:
        return self._folder / f"{MARKER}.next"

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
