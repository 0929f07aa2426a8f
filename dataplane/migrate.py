"""Brings the record store's database to the newest schema: `python -m dataplane.migrate`, behind `memplane migrate`.

Only PostgreSQL is migrated so: it has an owner whom the data planes are not. SQLite is brought up to date when opened.
The exit code is 0 when the database is up to date, 1 when it is not (with `--check`) or cannot be, 2 for wrong usage.
"""

import json
import sys
from collections.abc import Sequence

from dataplane.config import Part, read_record_store
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.options import options_from
from memplane.settings import BadConfig

DONE, FAILED, WRONG_USAGE = 0, 1, 2


def run(arguments: Sequence[str]) -> int:
    """Migrates and tells what was made; the exit code."""
    settings = [argument for argument in arguments if argument not in ("--check", "--json")]
    is_check, as_json = "--check" in arguments, "--json" in arguments
    try:
        changes = _migrate(read_record_store(settings), is_check=is_check)
    except BadConfig as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_USAGE
    except (Misconfigured, BackendUnavailable) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    sys.stdout.write(_told(changes, is_check=is_check, as_json=as_json))
    return FAILED if is_check and changes else DONE


def _migrate(part: Part, *, is_check: bool) -> list[str]:
    if part.adapter != "postgres":
        raise BadConfig(f"record_store.adapter: is {part.adapter}, which is brought up to date when it is opened")
    try:
        from dataplane.adapters.postgres.migrate import migrate  # noqa: PLC0415 - an extra that may be missing
        from dataplane.adapters.postgres.options import PostgresOptions  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadConfig(f"PostgreSQL needs {error.name}: pip install 'memplane[stores]'") from error
    return migrate(options_from(PostgresOptions, "record_store", part.table), is_check=is_check)


def _told(changes: Sequence[str], *, is_check: bool, as_json: bool) -> str:
    if as_json:
        return json.dumps({"changes": list(changes), "is_check": is_check}, indent=2) + "\n"
    lines = [f"{'missing' if is_check else 'made'}: {change}" for change in changes]
    return "\n".join(lines or ["up to date"]) + "\n"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
