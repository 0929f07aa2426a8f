"""`memplane migrate`: brings PostgreSQL to the newest schema, in a process that may open stores."""

import asyncio
import sys
from pathlib import Path

import click

from memplane.cli.config import plane_environment
from memplane.cli.session import Session, config_option, json_option, pass_session

MODULE = "dataplane.migrate"
VARIABLES = {"dsn": "MEMPLANE_MIGRATE_DSN", "migrate_dsn": "MEMPLANE_MIGRATE_MIGRATE_DSN"}


@click.command(
    epilog="""\b
Examples:
  memplane migrate --config /etc/memplane/memplane.toml
  memplane migrate --config /etc/memplane/memplane.toml --check

It needs migrate_dsn, the owner of the tables, and dsn, the role of the data planes, which it makes where it may.
Any number may run at once, and data planes may go on serving.

Exit codes: 0 up to date, 1 not (with --check) or it cannot be done, 2 wrong usage."""
)
@config_option
@click.option("--dsn", metavar="DSN", help="As [record_store] dsn; better in the environment: MEMPLANE_MIGRATE_DSN.")
@click.option("--migrate-dsn", metavar="DSN", help="As [record_store] migrate_dsn; or MEMPLANE_MIGRATE_MIGRATE_DSN.")
@click.option("--check", is_flag=True, help="Change nothing, say what would be done.")
@json_option
@pass_session
def migrate(session: Session, /, config: Path | None, dsn: str | None, migrate_dsn: str | None, check: bool) -> None:
    """Makes or updates the tables, roles and rights of the record store on PostgreSQL, and says what it did."""
    arguments = ["--config", str(config)] if config else []
    arguments += [flag for flag, given in (("--check", check), ("--json", session.as_json)) if given]
    given = {"dsn": dsn, "migrate_dsn": migrate_dsn}
    secrets = {VARIABLES[name]: value for name, value in given.items() if value}
    raise click.exceptions.Exit(asyncio.run(_run(arguments, secrets)))


async def _run(arguments: list[str], secrets: dict[str, str]) -> int:
    """Runs the module with our streams; its exit code. DSNs go through the environment, which others do not see."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", MODULE, *arguments), env=plane_environment(secrets)
    )
    return await process.wait()
