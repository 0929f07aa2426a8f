"""The roles that the data plane works as, and what they may do.

Three roles. The *owner* runs migrations. The *app role* logs in for the data plane: it owns nothing and sees the rows
of the namespaces that its transaction names. The *system role* cannot log in; the app role takes it on for what
concerns all namespaces (projector, retention), for one transaction at a time. It must not be inherited: PostgreSQL
applies the policies of every role whose rights one inherits, so the app role would see everything always.

Each function makes what is missing and yields a name for it; done twice, the second time yields nothing.
"""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from dataplane.adapters.postgres.options import BACKEND, PostgresOptions
from dataplane.errors import Misconfigured

OwnerConnection = psycopg.Connection[tuple[Any, ...]]

_READ_ONLY_TABLES = ("schema_migrations",)
_INHERITANCE_PER_GRANT = 160_000
_TENANT_TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polname = 'tenant'
WHERE c.relnamespace = 'memplane'::regnamespace ORDER BY 1"""
_SYSTEM_POLICY = """
SELECT roles @> ARRAY[%(system)s, current_user]::name[] FROM pg_policies
WHERE schemaname = 'memplane' AND tablename = %(table)s AND policyname = 'system'"""
_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'memplane'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1"""
_OWNED_BY_APP = """
SELECT c.relname, pg_get_userbyid(n.nspowner) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'memplane' AND c.relkind IN ('r', 'p') AND pg_get_userbyid(c.relowner) = %s ORDER BY 1"""
_ROLE = "SELECT rolcanlogin, rolinherit FROM pg_roles WHERE rolname = %s"
_MAY = "SELECT has_table_privilege(%(role)s, format('memplane.%%I', %(table)s::text), %(privilege)s)"
_MAY_CALL = """
SELECT has_function_privilege(%(role)s, 'memplane.make_partitions(integer)', 'EXECUTE')
    AND has_function_privilege(%(role)s, 'memplane.analyse_young()', 'EXECUTE')"""


def make_roles(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    """Makes the app role and the system role where they are missing. Raises Misconfigured without the right to."""
    try:
        yield from _make_system_role(connection, options.system_role)
        yield from _make_app_role(connection, options)
        yield from _let_take_on(connection, options)
    except psycopg.errors.InsufficientPrivilege as error:
        raise Misconfigured(BACKEND, _by_hand(options)) from error


def _make_system_role(connection: OwnerConnection, role: str) -> Iterator[str]:
    if connection.execute(_ROLE, (role,)).fetchone() is None:
        _run(connection, "CREATE ROLE {} NOLOGIN", role)
        yield f"role {role}"


def _make_app_role(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    role = options.app_role
    if connection.execute(_ROLE, (role,)).fetchone() is not None:
        return
    _run(connection, "CREATE ROLE {} NOINHERIT", role)
    login = psycopg.conninfo.conninfo_to_dict(options.dsn)
    password = login.get("password")
    if login.get("user") == role and isinstance(password, str):
        # Sent as its hash, so that no log of the server shows it.
        hashed = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        connection.execute(sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(hashed)))
        yield f"role {role}, which logs in with the password of the DSN"
    else:
        yield f"role {role}; let it log in with ALTER ROLE {role} LOGIN PASSWORD '...'"


def _let_take_on(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    app, system = options.app_role, options.system_role
    [(is_member, inherits)] = connection.execute(
        "SELECT pg_has_role(%(app)s, %(system)s, 'MEMBER'), pg_has_role(%(app)s, %(system)s, 'USAGE')",
        {"app": app, "system": system},
    ).fetchall()
    if is_member and not inherits:
        return
    if connection.info.server_version >= _INHERITANCE_PER_GRANT:
        _run(connection, "GRANT {} TO {} WITH INHERIT FALSE, SET TRUE", system, app)
    else:
        _run(connection, "ALTER ROLE {} NOINHERIT", app)
        _run(connection, "GRANT {} TO {}", system, app)
    yield f"membership of {app} in {system}, not inherited"


def _by_hand(options: PostgresOptions) -> str:
    app, system = options.app_role, options.system_role
    return (
        "the role of migrate_dsn may not make roles; let an administrator run, once: "
        f"CREATE ROLE {system} NOLOGIN; CREATE ROLE {app} LOGIN NOINHERIT PASSWORD '...'; "
        f"GRANT {system} TO {app} (from PostgreSQL 16 on: WITH INHERIT FALSE, SET TRUE)"
    )


def take_back(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    """Gives tables that the app role owns to the owner of the schema. Raises Misconfigured without the right to."""
    app = options.app_role
    owned = connection.execute(_OWNED_BY_APP, (app,)).fetchall()
    if owned and owned[0][1] == app:
        advice = "give schema and tables to another role, and let migrate_dsn log in as that"
        raise Misconfigured(BACKEND, f"{app}, which data planes log in as, owns the schema memplane; {advice}")
    for table, owner in owned:
        try:
            with connection.transaction():
                _run(connection, "ALTER TABLE memplane.{} OWNER TO {}", table, owner)
        except psycopg.errors.InsufficientPrivilege as error:
            changes = "; ".join(f"ALTER TABLE memplane.{name} OWNER TO {owner}" for name, _ in owned)
            text = (
                f"{app} owns tables, which the role of migrate_dsn may not change; let an administrator run: {changes}"
            )
            raise Misconfigured(BACKEND, text) from error
        yield f"ownership of {table} by {owner}, not {app}"


def grant(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    """Lets both roles use the tables, and the system role see every row."""
    tables = [row[0] for row in connection.execute(_TABLES)]
    for role in (options.app_role, options.system_role):
        lacking = [table for table in tables if not _may(connection, role, table)]
        if lacking or not connection.execute(_MAY_CALL, {"role": role}).fetchall()[0][0]:
            _grant(connection, role, lacking)
            yield f"rights of {role} to {len(lacking)} tables"
    for (table,) in connection.execute(_TENANT_TABLES).fetchall():
        known = connection.execute(_SYSTEM_POLICY, {"system": options.system_role, "table": table}).fetchone()
        if known is None or not known[0]:
            _run(connection, "DROP POLICY IF EXISTS system ON memplane.{}", table)
            _run(
                connection, "CREATE POLICY system ON memplane.{} TO {}, CURRENT_USER USING (true)",
                table, options.system_role,
            )  # fmt: skip
            yield f"policy by which {options.system_role} sees all of {table}"


def _may(connection: OwnerConnection, role: str, table: str) -> bool:
    privileges = ("SELECT",) if table in _READ_ONLY_TABLES else ("SELECT", "INSERT", "UPDATE", "DELETE")
    asked = ({"role": role, "table": table, "privilege": privilege} for privilege in privileges)
    return all(connection.execute(_MAY, parameters).fetchall()[0][0] for parameters in asked)


def _grant(connection: OwnerConnection, role: str, tables: list[str]) -> None:
    _run(connection, "GRANT USAGE ON SCHEMA memplane TO {}", role)
    _run(connection, "GRANT EXECUTE ON FUNCTION memplane.make_partitions, memplane.analyse_young TO {}", role)
    for table in tables:
        if table in _READ_ONLY_TABLES:
            _run(connection, "GRANT SELECT ON memplane.{} TO {}", table, role)
        else:
            _run(connection, "GRANT SELECT, INSERT, UPDATE, DELETE ON memplane.{} TO {}", table, role)


def _run(connection: OwnerConnection, statement: LiteralString, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
