"""Opening an index in the database of the record store's schema."""

import asyncio
from typing import Final

from dataplane.adapters.postgres.faults import remaining_s, translated
from dataplane.adapters.postgres.login import check_version, connect
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Connection
from dataplane.adapters.postgres.schema import READ_APPLIED, due, read_migrations
from dataplane.errors import Misconfigured
from dataplane.model import Scope
from dataplane.ports import Examination, Problem

_HAS_SCHEMA: Final = "SELECT has_schema_privilege(to_regnamespace('memplane')::oid, 'USAGE')"
_STANDBY: Final = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
READ_ONLY: Final = "dsn leads to a server that takes no writes; give the primary's"
NOBODY: Final = Scope(())
"""The scope of what concerns no memory."""


async def check(options: PostgresOptions, backend: str, deadline_s: float) -> None:
    """Raises Misconfigured when the database cannot hold an index, BackendUnavailable when nothing answers in time."""
    try:
        with translated(backend):
            async with asyncio.timeout(remaining_s(deadline_s, backend)):
                problem = await _problem(options)
    except Misconfigured as error:
        raise Misconfigured(backend, error.problem) from None
    if problem:
        raise Misconfigured(backend, problem.message)


async def _problem(options: PostgresOptions) -> Problem | None:
    async with await connect(options.dsn, options) as connection:
        check_version(connection.info.server_version)
        return await schema_problem(connection) or await write_problem(connection)


async def examine(connection: Connection) -> Examination:
    """See Backend.examine."""
    [(version,)] = await (await connection.execute("SELECT current_setting('server_version')")).fetchall()
    found = await schema_problem(connection) or await write_problem(connection)
    return Examination(f"PostgreSQL {version.split()[0]}", (found,) if found else ())


async def schema_problem(connection: Connection) -> Problem | None:
    """What is wrong with the schema."""
    if (await (await connection.execute(_HAS_SCHEMA)).fetchall()) != [(True,)]:
        return Problem("SCHEMA_MISSING", "the schema is missing, or its rights; run memplane migrate")
    applied: dict[int, str] = dict(await (await connection.execute(READ_APPLIED)).fetchall())
    try:
        missing = due(read_migrations(), applied)
    except Misconfigured as error:
        return Problem("SCHEMA_UNKNOWN", error.problem)
    return Problem("SCHEMA_BEHIND", f"the schema lacks {missing[0].name}; run memplane migrate") if missing else None


async def write_problem(connection: Connection) -> Problem | None:
    """Whether the server takes writes."""
    [(is_read_only,)] = await (await connection.execute(_STANDBY)).fetchall()
    return Problem("READ_ONLY", READ_ONLY) if is_read_only else None
