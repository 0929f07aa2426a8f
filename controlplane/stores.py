"""Which revision store a control plane has, and its own name among those that share it."""

import secrets
from contextlib import suppress
from pathlib import Path

from controlplane.revisions import RevisionStore
from controlplane.sqlite_revisions import SqliteRevisions

HOLDER_BYTES = 8
_FILE = "control_id"


async def open_store(file: Path) -> RevisionStore:
    """The store that the configuration names. Raises UnusableStore, sqlite3.Error or OSError."""
    return await SqliteRevisions.open(file)


def holder_id(data_dir: Path) -> str:
    """The control plane's own name, 16 hex digits, drawn at its first start and kept in its data folder.

    Blocking. Raises OSError.
    """
    file = data_dir / _FILE
    with suppress(FileNotFoundError):
        held = file.read_text().strip()
        if held:
            return held
    name = secrets.token_hex(HOLDER_BYTES)
    draft = file.with_name(f"{_FILE}.new")
    draft.write_text(name)
    draft.replace(file)
    return name
