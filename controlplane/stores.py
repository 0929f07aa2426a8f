"""Which revision store a control plane has, and its own name among those that share it."""

import importlib
import secrets
from contextlib import suppress
from pathlib import Path

from controlplane.revisions import RevisionStore, UnusableStore
from controlplane.sqlite_revisions import SqliteRevisions
from memplane.settings import Secret

HOLDER_BYTES = 8
_FILE = "control_id"


async def open_store(file: Path, dsn: Secret | None) -> RevisionStore:
    """The store in PostgreSQL at `dsn`, else the one in the file.

    Raises UnusableStore, Unavailable, sqlite3.Error or OSError.
    """
    if dsn is None:
        return await SqliteRevisions.open(file)
    try:
        # Whoever keeps revisions in a file needs no driver.
        postgres = importlib.import_module("controlplane.postgres_revisions")
    except ModuleNotFoundError as error:
        raise UnusableStore("revisions-dsn needs psycopg: pip install 'memplane[stores]'") from error
    store: RevisionStore = await postgres.PostgresRevisions.open(dsn)
    return store


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
