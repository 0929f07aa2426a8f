"""What is wrong with a PostgreSQL that answers: found at start, where it ends the start, and again while running."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg.rows import dict_row

from dataplane.adapters.postgres.faults import translated
from dataplane.adapters.postgres.login import check_version, connect
from dataplane.adapters.postgres.options import BACKEND, PostgresOptions
from dataplane.adapters.postgres.pool import Connection, Pool
from dataplane.adapters.postgres.schema import READ_APPLIED, due, read_migrations
from dataplane.errors import Misconfigured
from dataplane.ports import Clock, Examination, Problem

MAX_SKEW_S = 1.0
"""How far the server's clock may be from ours: times of memories come from ours, leases from the server's."""

# Reads catalogues alone, so it needs no schema and no right to a table.
_FACTS: Final = """
SELECT current_setting('server_version') AS version,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us,
    pg_is_in_recovery() AS is_standby,
    current_setting('transaction_read_only') = 'on' AS is_read_only,
    current_setting('fsync') = 'on' AS has_fsync,
    current_setting('synchronous_commit') AS synchronous_commit,
    r.rolsuper AS is_superuser,
    r.rolbypassrls AS bypasses_rls,
    r.rolname AS role,
    s.oid IS NOT NULL AS has_system_role,
    coalesce(pg_has_role(r.oid, s.oid, 'MEMBER'), false) AS may_take_on,
    coalesce(pg_has_role(r.oid, s.oid, 'USAGE'), false) AS inherits,
    to_regnamespace('memplane') IS NOT NULL AS has_schema,
    coalesce(has_schema_privilege(to_regnamespace('memplane')::oid, 'USAGE'), false) AS may_use_schema,
    (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace AS n WHERE n.nspname = 'memplane') AS schema_owner,
    (SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class AS c
        WHERE c.relnamespace = to_regnamespace('memplane') AND c.relkind IN ('r', 'p', 'S', 'v', 'm')
        AND c.relowner = r.oid) AS owned,
    (SELECT min(pg_get_userbyid(c.relowner)) FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('memplane')
        AND c.relowner <> r.oid AND pg_has_role(r.oid, c.relowner, 'USAGE')) AS inherited_owner,
    (SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class AS c
        WHERE c.relnamespace = to_regnamespace('memplane') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND NOT has_table_privilege(r.oid, c.oid, 'SELECT')) AS ungranted,
    (SELECT string_agg(c.relname, ', ' ORDER BY c.relname) FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'namespace' AND NOT a.attisdropped
        WHERE c.relnamespace = to_regnamespace('memplane') AND c.relkind IN ('r', 'p')
        AND NOT (c.relrowsecurity AND c.relforcerowsecurity)) AS unprotected
FROM pg_roles AS r LEFT JOIN pg_roles AS s ON s.rolname = %(system_role)s
WHERE r.rolname = session_user"""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Examiner:
    """Looks at the primary with the app role's eyes."""

    options: PostgresOptions
    clock: Clock

    async def check_at_start(self) -> None:
        """Raises Misconfigured for what keeps the store from working rightly; BackendUnavailable when none answers."""
        connection = await connect(self.options.dsn, self.options)
        async with connection:
            check_version(connection.info.server_version)
            with translated():
                problem = next(self._grave(await self._facts(connection)), None)
                problem = problem or await self._schema_problem(connection)
        if problem:
            raise Misconfigured(BACKEND, problem.message)

    async def examine(self, pool: Pool, deadline_s: float) -> Examination:
        """See Backend.examine."""
        async with pool.connection(deadline_s) as connection:
            before_us = self.clock.now_us()
            facts = await self._facts(connection)
            skew_us = facts["now_us"] - (before_us + self.clock.now_us()) // 2
            problems = [*self._grave(facts), *_light(facts, skew_us / 1_000_000)]
            if not problems and (problem := await self._schema_problem(connection)):
                problems.append(problem)
        return Examination(f"PostgreSQL {facts['version'].split()[0]}", tuple(problems))

    async def _facts(self, connection: Connection) -> Facts:
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_FACTS, {"system_role": self.options.system_role})
            [facts] = await cursor.fetchall()
            return facts

    def _grave(self, facts: Facts) -> Iterator[Problem]:
        """What must not be while memories are kept here."""
        yield from self._wrong_role(facts)
        if facts["is_standby"]:
            yield Problem("READ_ONLY", "dsn leads to a standby; give the primary's, and this as replica_dsn")
        elif facts["is_read_only"]:
            yield Problem("READ_ONLY", "the server is read-only; see default_transaction_read_only")
        if not facts["has_schema"]:
            yield Problem("SCHEMA_MISSING", "the schema is missing; run memplane migrate")
        elif not facts["may_use_schema"]:
            text = f"role {facts['role']} has no rights to the schema; run memplane migrate with it as app_role"
            yield Problem("GRANTS_MISSING", text)
        elif facts["ungranted"]:
            text = f"role {facts['role']} has no rights to {facts['ungranted']}; run memplane migrate"
            yield Problem("GRANTS_MISSING", text)
        if facts["unprotected"]:
            text = f"row-level security is off for {facts['unprotected']}; ENABLE and FORCE it again"
            yield Problem("ROW_SECURITY_OFF", text)

    def _wrong_role(self, facts: Facts) -> Iterator[Problem]:
        role, system = facts["role"], self.options.system_role
        if facts["is_superuser"] or facts["bypasses_rls"]:
            text = f"role {role} is a superuser or bypasses row-level security; log in as one that is neither"
            yield Problem("ROLE_TOO_STRONG", text)
        elif facts["owned"]:
            yield Problem("ROLE_TOO_STRONG", f"role {role} owns {', '.join(facts['owned'])}; {self._disowned(facts)}")
        elif owner := facts["inherited_owner"]:
            text = f"role {role} has the rights of {owner}, which owns tables; run REVOKE {owner} FROM {role}"
            yield Problem("ROLE_TOO_STRONG", text)
        elif facts["inherits"]:
            text = (
                f"role {role} inherits {system} and so sees every namespace; run ALTER ROLE {role} NOINHERIT, from "
                f"PostgreSQL 16 on GRANT {system} TO {role} WITH INHERIT FALSE"
            )
            yield Problem("ROLE_TOO_STRONG", text)
        elif facts["has_schema"] and not facts["may_take_on"]:
            text = f"role {role} may not take on {system}; run memplane migrate with {role} as app_role"
            yield Problem("ROLE_TOO_WEAK", text)

    def _disowned(self, facts: Facts) -> str:
        """How the role comes to own no table."""
        app, owner = self.options.app_role, facts["schema_owner"]
        if facts["role"] != app:
            return f"log in as {app}, which memplane migrate makes"
        if owner == app:
            advice = "ALTER SCHEMA memplane OWNER TO ... and ALTER TABLE ... OWNER TO ... for each"
            return f"give them and the schema to the role of migrate_dsn, another one: {advice}"
        changes = (f"ALTER TABLE memplane.{table} OWNER TO {owner}" for table in facts["owned"])
        return f"run memplane migrate, or as an administrator: {', '.join(changes)}"

    async def _schema_problem(self, connection: Connection) -> Problem | None:
        applied: dict[int, str] = dict(await (await connection.execute(READ_APPLIED)).fetchall())
        try:
            missing = due(read_migrations(), applied)
        except Misconfigured as error:
            return Problem("SCHEMA_UNKNOWN", error.problem)
        if missing:
            return Problem("SCHEMA_BEHIND", f"the schema lacks {missing[0].name}; run memplane migrate")
        return None


def _light(facts: Facts, skew_s: float) -> Iterator[Problem]:
    """What can be lived with."""
    if abs(skew_s) > MAX_SKEW_S:
        yield Problem("CLOCK_SKEW", f"the server's clock is {skew_s:+.1f} s from ours; let NTP keep both")
    if not facts["has_fsync"]:
        yield Problem("FSYNC_OFF", "fsync is off: a crash of the server's machine may damage everything; turn it on")
    if facts["synchronous_commit"] == "off":
        yield Problem("SYNCHRONOUS_COMMIT_OFF", "a crash may lose acknowledged writes; turn synchronous_commit on")
