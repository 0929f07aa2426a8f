"""What this data plane last knew of the record store, in a file of its folder."""

from pathlib import Path


class WitnessFile:
    """A beacon and a position in a file that is replaced whole. Blocking; call it off the event loop."""

    def __init__(self, path: Path):
        self._path = path

    def read(self) -> tuple[int, int]:
        """Both; (0, 0) when there is no file, or none of ours. Raises OSError when it is unreadable."""
        try:
            number, position = self._path.read_text(encoding="ascii").split()
            return int(number), int(position)
        except (FileNotFoundError, ValueError):
            return 0, 0

    def write(self, number: int, position: int) -> None:
        """Keeps both. Raises OSError, and then what was before is still there."""
        draft = self._path.with_name(self._path.name + ".new")
        draft.write_text(f"{number} {position}\n", encoding="ascii")
        draft.replace(self._path)
