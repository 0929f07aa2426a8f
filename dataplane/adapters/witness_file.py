"""The last beacon of this data plane in a file of its folder."""

from pathlib import Path


class WitnessFile:
    """A number in a file that is replaced whole. Blocking; call it off the event loop."""

    def __init__(self, path: Path):
        self._path = path

    def read(self) -> int:
        """The number; 0 when there is none, or no number. Raises OSError when the file is unreadable."""
        try:
            return int(self._path.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def write(self, number: int) -> None:
        """Keeps a number. Raises OSError, and then the one before is still there."""
        draft = self._path.with_name(self._path.name + ".new")
        draft.write_text(f"{number}\n", encoding="ascii")
        draft.replace(self._path)
