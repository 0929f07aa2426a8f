"""Breaks a promise on purpose, behind MemPlane's back, to see that the harness notices: rows of the record store."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import psycopg

from tests.chaos.history import Entry, is_shared
from tests.chaos.stack import Stack

FORGET = "DELETE FROM {schema}memories WHERE memory_id = '{memory_id}'"
REVIVE = "UPDATE {schema}memories SET state = 1 WHERE memory_id = '{memory_id}'"
"""State 1 is ACTIVE."""


def _kept(entries: Sequence[Entry]) -> Iterable[str]:
    """Memories of one acknowledged write that nobody asked to forget, to change or to replace."""
    touched = {entry.asked.get("id") for entry in entries if entry.method in {"forget", "update"}}
    writes = [entry for entry in entries if entry.method == "write" and entry.told.get("state") == "ACTIVE"]
    writers = Counter(entry.told["id"] for entry in writes)
    for entry in writes:
        is_plain = not entry.asked["fact_key"] and not entry.asked.get("ttl") and not is_shared(entry.asked["marker"])
        if is_plain and writers[entry.told["id"]] == 1 and entry.told["id"] not in touched:
            yield str(entry.told["id"])


def _forgotten(entries: Sequence[Entry]) -> Iterable[str]:
    """Memories of which a row is left: forgotten SOFT, and never otherwise."""
    forgets = [entry for entry in entries if entry.method == "forget"]
    hard = {entry.asked["id"] for entry in forgets if entry.asked["mode"] == "HARD"}
    own = {
        entry.told.get("id") for entry in entries if entry.method == "write" and not is_shared(entry.asked["marker"])
    }
    for entry in forgets:
        if entry.code == "OK" and entry.asked["id"] in own - hard:
            yield str(entry.asked["id"])


_KINDS: Mapping[str, tuple[Callable[[Sequence[Entry]], Iterable[str]], str]] = {
    "forget": (_kept, FORGET),
    "revive": (_forgotten, REVIVE),
}
KINDS = tuple(_KINDS)


async def sabotage(kind: str, stack: Stack, entries: Sequence[Entry]) -> str:
    """Deletes the row of a memory that was acknowledged, or makes a forgotten one ACTIVE; returns its id.

    Raises AssertionError when the history holds none.
    """
    choose, statement = _KINDS[kind]
    memory_id = next(iter(choose(entries)), None)
    assert memory_id is not None, f"nothing to {kind}"
    if stack.places.postgres_dsn:
        await asyncio.to_thread(_in_postgres, stack.places.postgres_dsn, statement, memory_id)
    else:
        await _in_sqlite(stack, statement, memory_id)
    return memory_id


def _in_postgres(dsn: str, statement: str, memory_id: str) -> None:
    with psycopg.connect(dsn) as connection:
        changed = connection.execute(statement.format(schema="memplane.", memory_id=memory_id).encode()).rowcount
    assert changed == 1, memory_id


async def _in_sqlite(stack: Stack, statement: str, memory_id: str) -> None:
    """While the data plane is stopped: it holds the file alone."""
    unit = stack.units["data-1"]
    await unit.stop()
    connection = sqlite3.connect(stack.places.data_dirs[0] / "records.sqlite3")
    with connection:
        changed = connection.execute(statement.format(schema="", memory_id=memory_id)).rowcount
    connection.close()
    assert changed == 1, memory_id
    await unit.start()
    await stack.planes[0].wait_ready()
