"""The folder of one index: its shards, a marker that names the one in force, and the numbers kept beside it.

The marker is replaced by one rename, so that a process killed at any moment leaves a folder whose marker names a whole
shard: the old one or the new one. Whatever else lies there was left behind and is removed, but for the beacons and the
blank that further shards are made from.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from dataplane.adapters.edge import files
from dataplane.adapters.edge.blank import Blank
from dataplane.logic.beacon import with_saved

MARKER = "identity.json"
BEACONS = "beacons.json"
BLANK = "blank.json"


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
            marker = json.loads(self._marker.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        if not isinstance(marker, dict) or marker.get("identity") != self._identity:
            return None
        return self._folder / str(marker.get("shard"))

    def stands(self) -> bool:
        """Whether a shard is in force and there."""
        current = self.current()
        return current is not None and current.is_dir()

    def beacons(self) -> dict[str, int]:
        """The numbers kept here, by name; none where no shard is in force."""
        try:
            found = json.loads(self._beacons.read_text(encoding="utf-8")) if self.stands() else {}
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def save_beacon(self, name: str, value: int) -> None:
        """Keeps a number, durably. Not for several threads at once."""
        files.write_whole(self._beacons, with_saved(self.beacons(), name, value))

    def blank(self) -> Blank | None:
        """What another shard can be made from; None where nothing readable was kept."""
        try:
            found = json.loads(self._blank.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def keep_blank(self, blank: Blank) -> None:
        """Keeps what another shard can be made from, durably."""
        files.write_whole(self._blank, blank)

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
        files.write_coming(self._marker, {"identity": self._identity, "shard": shard.name})

    def switch(self) -> None:
        """Puts the announced shard in force."""
        files.put_in_force(self._marker)

    def remove_others(self) -> None:
        """Removes what is neither marker, beacons nor the shard in force, once the last switch is durable."""
        files.sync_folder(self._folder)
        kept = {self.current(), self._marker, self._blank, self._beacons, files.coming(self._beacons)}
        for path in self._folder.iterdir():
            if path in kept:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    @property
    def _marker(self) -> Path:
        return self._folder / MARKER

    @property
    def _beacons(self) -> Path:
        return self._folder / BEACONS

    @property
    def _blank(self) -> Path:
        return self._folder / BLANK
