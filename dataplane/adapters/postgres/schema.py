"""Which schema a release knows, and which one a database has.

The migrations are `migrations/NNNN_name.sql`, numbered from 1 without gaps. Each runs once, in one transaction with the
others that are due; the table `memplane.schema_migrations` keeps its checksum, for one that was changed after it ran
means that databases differ.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from dataplane.adapters.postgres.options import BACKEND
from dataplane.errors import Misconfigured

READ_APPLIED = "SELECT version, checksum FROM memplane.schema_migrations ORDER BY version"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; `checksum` is SHA-256 hex of its text."""

    version: int
    name: str
    text: str
    checksum: str


def read_migrations() -> list[Migration]:
    """All migrations of this release, in order."""
    folder = files("dataplane.adapters.postgres") / "migrations"
    scripts = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [_migration(number, script.name, script.read_text("utf-8")) for number, script in enumerate(scripts, 1)]


def _migration(number: int, file_name: str, text: str) -> Migration:
    return Migration(number, file_name.removesuffix(".sql"), text, hashlib.sha256(text.encode()).hexdigest())


def due(known: Sequence[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """The migrations that have yet to run. Raises Misconfigured for a database that this release does not know."""
    newest = max(applied, default=0)
    if newest > len(known):
        raise Misconfigured(
            BACKEND,
            f"the schema is version {newest}, but this release knows versions up to {len(known)}; "
            "start the release that made it, or a newer one",
        )
    for migration in known[:newest]:
        if applied.get(migration.version) != migration.checksum:
            raise Misconfigured(
                BACKEND,
                f"migration {migration.name} is not the one that this database was made with; "
                "take the release that made it, or a database of its own for this one",
            )
    return list(known[newest:])
