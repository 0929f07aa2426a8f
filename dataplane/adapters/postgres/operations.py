"""Operations and markers, which belong to no namespace alone and are the system role's."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from dataplane.adapters.postgres.clauses import fill
from dataplane.adapters.postgres.pool import Parameters, Pool, Row
from dataplane.changes import OperationRecord
from dataplane.model import SYSTEM_SCOPE

_COLUMNS: Final = tuple(field.name for field in fields(OperationRecord))
_NAMES: Final = ", ".join(_COLUMNS)
_SAVE = fill(
    "INSERT INTO memplane.operations AS o ({names}) VALUES ({values})"
    " ON CONFLICT (name) DO UPDATE SET {sets}"
    " WHERE (NOT o.is_done OR (o.error <> '' AND excluded.response <> ''))"
    " AND excluded.update_time_us >= o.update_time_us",
    names=_NAMES,
    values=", ".join(f"%({name})s" for name in _COLUMNS),
    sets=", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:]),
)
_EXPIRE = "DELETE FROM memplane.operations WHERE expire_time_us <= (SELECT memplane.now_us())"
_FIND = fill(
    "SELECT {names} FROM memplane.operations"
    " WHERE name = %(name)s::text AND expire_time_us > (SELECT memplane.now_us())",
    names=_NAMES,
)
_LIST = fill(
    "SELECT {names} FROM memplane.operations"
    " WHERE name > %(after)s::text AND expire_time_us > (SELECT memplane.now_us())"
    " ORDER BY name LIMIT %(page_size)s::bigint",
    names=_NAMES,
)
_LIST_OWN = fill(
    "SELECT {names} FROM memplane.operations"
    " WHERE principal_id = %(principal)s::text AND name > %(after)s::text"
    " AND expire_time_us > (SELECT memplane.now_us())"
    " ORDER BY name LIMIT %(page_size)s::bigint",
    names=_NAMES,
)
_MARKER = "SELECT value FROM memplane.markers WHERE name = %(name)s::text"
_SAVE_MARKER = """
INSERT INTO memplane.markers (name, value) VALUES (%(name)s, %(value)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
_RAISE_MARKER = """
INSERT INTO memplane.markers AS m (name, value) VALUES (%(name)s, %(value)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE excluded.value / %(unit)s::bigint > m.value / %(unit)s::bigint"""
_STAMP_MARKER = """
INSERT INTO memplane.markers (name, value) VALUES (%(name)s, memplane.now_us())
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
_STALE_MARKERS = """
SELECT name FROM memplane.markers
WHERE starts_with(name, %(prefix)s::text) AND value <= (SELECT memplane.now_us()) - %(age_us)s::bigint
ORDER BY name LIMIT %(page_size)s::bigint"""
_DROP_MARKERS = "DELETE FROM memplane.markers WHERE name = ANY (%(names)s::text[])"


class PostgresOperations:
    """What RecordStore says of operations and markers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def save_operations(self, operations: Sequence[OperationRecord], deadline_s: float) -> None:
        """See the port."""
        queries: list[tuple[str, Parameters]] = [(_EXPIRE, {})]
        queries += [(_SAVE, asdict(operation)) for operation in operations]
        await self._pool.transact(SYSTEM_SCOPE, queries, deadline_s)

    async def find_operation(self, name: str, deadline_s: float) -> OperationRecord | None:
        """See the port."""
        rows = await self._run(_FIND, {"name": name}, deadline_s)
        return OperationRecord(*rows[0]) if rows else None

    async def list_operations(
        self, after_name: str, page_size: int, deadline_s: float, principal_id: str = ""
    ) -> list[OperationRecord]:
        """See the port."""
        given = {"after": after_name, "page_size": page_size, "principal": principal_id}
        rows = await self._run(_LIST_OWN if principal_id else _LIST, given, deadline_s)
        return [OperationRecord(*row) for row in rows]

    async def marker(self, name: str, deadline_s: float) -> int:
        """See the port."""
        rows = await self._run(_MARKER, {"name": name}, deadline_s)
        return int(rows[0][0]) if rows else 0

    async def save_marker(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        await self._run(_SAVE_MARKER, {"name": name, "value": value}, deadline_s)

    async def raise_marker(self, name: str, value: int, unit: int, deadline_s: float) -> int:
        """See the port."""
        raising: tuple[str, Parameters] = (_RAISE_MARKER, {"name": name, "value": value, "unit": unit})
        rows = await self._pool.transact(SYSTEM_SCOPE, [raising, (_MARKER, {"name": name})], deadline_s)
        return int(rows[0][0])

    async def stamp_marker(self, name: str, deadline_s: float) -> None:
        """See the port."""
        await self._run(_STAMP_MARKER, {"name": name}, deadline_s)

    async def stale_markers(self, prefix: str, seconds: float, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        given = {"prefix": prefix, "age_us": int(seconds * 1e6), "page_size": page_size}
        return [name for (name,) in await self._run(_STALE_MARKERS, given, deadline_s)]

    async def drop_markers(self, names: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        await self._run(_DROP_MARKERS, {"names": list(names)}, deadline_s)

    async def _run(self, statement: str, parameters: dict[str, Any], deadline_s: float) -> list[Row]:
        return await self._pool.transact(SYSTEM_SCOPE, [(statement, parameters)], deadline_s)
