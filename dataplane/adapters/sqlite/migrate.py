"""Brings a database file to the newest schema.

The migrations are `migrations/NNNN_name.sql`, numbered from 1 without gaps; `PRAGMA user_version` is the last one that
ran. All that are due run in one transaction, so a file is never between two schemas.
"""

import sqlite3
from dataclasses import dataclass
from importlib.resources import files


@dataclass
class SchemaTooNew(Exception):
    """The file was written by a newer release: its schema is `found`, and this release knows up to `known`."""

    found: int
    known: int

    def __str__(self) -> str:
        return (
            f"the record store's schema is version {self.found}, but this release knows versions up to {self.known}; "
            "start the release that wrote it, or a newer one"
        )


def read_migrations() -> list[str]:
    """The SQL texts in order; the first takes an empty file to version 1."""
    folder = files("dataplane.adapters.sqlite") / "migrations"
    scripts = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [script.read_text(encoding="utf-8") for script in scripts]


def migrate(connection: sqlite3.Connection, scripts: list[str]) -> int:
    """Runs what is due and returns the schema version; running it again does nothing. Raises SchemaTooNew."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > len(scripts):
        raise SchemaTooNew(found, len(scripts))
    if found < len(scripts):
        due = "\n".join(scripts[found:])
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{due}\nPRAGMA user_version = {len(scripts)};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise
    return len(scripts)
