"""What vector and text index on PostgreSQL share: one table of entries, written by version and seen by scope.

An entry is visible and durable when its transaction is, so a flush has nothing to do. Dead rows are the server's to
remove (autovacuum): the role of a data plane owns nothing and so cannot vacuum.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg

from dataplane.adapters.postgres import index_opening
from dataplane.adapters.postgres.clauses import fields_to_json, fill
from dataplane.adapters.postgres.pool import Parameters, Pool
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import SYSTEM_SCOPE, Held, IndexEntry, IndexKey, Scope
from dataplane.ports import Examination

BATCH: Final = 500
"""Entries of one statement: as JSON they take a fifth of the time of a statement each (2026-11)."""
_DELETE = "DELETE FROM memplane.{table} AS m WHERE m.memory_id = ANY (%(ids)s::text[]) AND {mine}"
_HELD = """
SELECT m.memory_id, m.version, m.namespace, m.fingerprint FROM memplane.{table} AS m
WHERE m.memory_id = ANY (%(ids)s::text[]) AND {mine}"""
_VERSIONS = """
SELECT m.memory_id, m.version, m.namespace, m.fingerprint FROM memplane.{table} AS m
WHERE m.memory_id > %(after)s::text AND {mine} ORDER BY m.memory_id LIMIT %(page_size)s::bigint"""
_PAGE: Final = 10_000
"""Entries read at once. Unmeasured."""
_COUNT = "SELECT count(*) FROM memplane.{table} AS m WHERE {mine}"
_CLEAR = "DELETE FROM memplane.{table} AS m WHERE {mine}"
_CLEAR_BEACONS = "DELETE FROM memplane.index_beacons WHERE entries = %(entries)s::text"
_BEACONS = "SELECT name, value FROM memplane.index_beacons WHERE entries = %(entries)s::text"
_SAVE_BEACON = """
INSERT INTO memplane.index_beacons (entries, name, value) VALUES (%(entries)s::text, %(name)s::text, %(value)s::bigint)
ON CONFLICT (entries, name) DO UPDATE SET value = greatest(index_beacons.value, excluded.value)"""
_DROP_BEACON = "DELETE FROM memplane.index_beacons WHERE entries = %(entries)s::text AND name = %(name)s::text"


class IndexEntries:
    """The entries of one index: the rows of `table` for which `mine` holds, given `parameters`."""

    def __init__(self, pool: Pool, backend: str, table: str, mine: str, parameters: Parameters) -> None:
        self._pool = pool
        self._backend = backend
        self._parts = {"table": table, "mine": mine}
        self._parameters = dict(parameters)
        self._named: Parameters = {"entries": " ".join([table, *map(str, parameters.values())])}

    async def upsert(self, statement: str, rows: Sequence[Mapping[str, Any]], deadline_s: float) -> None:
        """Runs a statement that takes `rows`, a JSON array, for each BATCH; see the port for what is refused."""
        self._pool.check(deadline_s)
        refused: dict[str, str] = {}
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            if await self._refusal(statement, batch, deadline_s):
                reasons = [await self._refusal(statement, [row], deadline_s) for row in batch]
                refused |= {row["memory_id"]: why for row, why in zip(batch, reasons, strict=True) if why}
        if refused:
            raise EntriesRefused(self._backend, refused)

    async def _refusal(self, statement: str, rows: Sequence[Mapping[str, Any]], deadline_s: float) -> str:
        """Why the server does not take the rows, whenever they are sent; "" when it took them."""
        try:
            await self._run(statement, {"rows": json.dumps(rows)}, deadline_s)
        except BackendUnavailable as error:
            if isinstance(error.__cause__, psycopg.DataError | psycopg.errors.ProgramLimitExceeded):
                return error.detail
            raise
        return ""

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        self._pool.check(deadline_s)
        if keys:
            await self._run(_DELETE, {"ids": _ids(keys)}, deadline_s)

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        self._pool.check(deadline_s)
        return _held(await self._run(_HELD, {"ids": _ids(keys)}, deadline_s)) if keys else {}

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        found: dict[str, Held] = {}
        after = ""
        while True:
            rows = await self._run(_VERSIONS, {"after": after, "page_size": _PAGE}, deadline_s)
            found |= _held(rows)
            if len(rows) < _PAGE:
                return found
            after = rows[-1][0]

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        return int((await self._run(_COUNT, {}, deadline_s))[0][0])

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        clearing = (fill(_CLEAR, **self._parts), self._parameters)
        await self._pool.transact(SYSTEM_SCOPE, [clearing, (_CLEAR_BEACONS, self._named)], deadline_s)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return dict(await self._pool.read(SYSTEM_SCOPE, _BEACONS, self._named, deadline_s))

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        beacon = {**self._named, "name": name, "value": value}
        query = (_SAVE_BEACON, beacon) if value else (_DROP_BEACON, {**self._named, "name": name})
        await self._pool.transact(SYSTEM_SCOPE, [query], deadline_s)

    async def _run(self, statement: str, parameters: Parameters, deadline_s: float) -> list[tuple[Any, ...]]:
        filled = fill(statement, **self._parts)
        return await self._pool.read(SYSTEM_SCOPE, filled, {**self._parameters, **parameters}, deadline_s)


class IndexOfEntries:
    """What vector and text index do alike: a `ports.Index` but for `upsert`."""

    def __init__(self, pool: Pool, entries: IndexEntries) -> None:
        self._pool = pool
        self._entries = entries

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        await self._entries.delete(keys, deadline_s)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._entries.versions(deadline_s)

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._entries.held(keys, deadline_s)

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        return await self._entries.count(deadline_s)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port: none, for the record store's own database is down whenever they would be asked for."""
        self._pool.check(deadline_s)
        return {}

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return await self._entries.beacons(deadline_s)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        await self._entries.save_beacon(name, value, deadline_s)

    async def flush(self, deadline_s: float) -> None:
        """See the port; what was written is visible and durable already."""
        self._pool.check(deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the port; the server's autovacuum does it."""
        self._pool.check(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        await self._entries.clear(deadline_s)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        async with self._pool.connection(deadline_s) as connection:
            return await index_opening.examine(connection)

    async def close(self) -> None:
        """See the port."""
        await self._pool.close()


def row_of(entry: IndexEntry) -> dict[str, Any]:
    """The columns that every entry has."""
    return {
        "memory_id": entry.memory_id,
        "version": entry.version,
        "namespace": entry.namespace,
        "pool": int(entry.pool),
        "fields": fields_to_json(entry.fields),
        "fingerprint": fingerprint(entry),
    }


def latest(entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """The last entry of each id, in the order of ids: parallel writers then wait for each other and do not deadlock."""
    by_id = {entry.memory_id: entry for entry in entries}
    return [by_id[memory_id] for memory_id in sorted(by_id)]


def _ids(keys: Sequence[IndexKey]) -> list[str]:
    return sorted({key.memory_id for key in keys})


def _held(rows: Sequence[tuple[Any, ...]]) -> dict[str, Held]:
    return {memory_id: Held(version, namespace, print_) for memory_id, version, namespace, print_ in rows}
