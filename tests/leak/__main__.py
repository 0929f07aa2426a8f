"""The long form: `python -m tests.leak --seconds 300 --seed 1`, on the embedded stores and on PostgreSQL with Redis."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from dataplane.adapters.postgres.migrate import migrate
from tests.leak.judge import Verdicts
from tests.leak.planes import Open, company, embedded, in_memory
from tests.leak.runner import Plan, run
from tests.postgres import options_for
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

STORES = ("memory", "embedded", "company")


@contextmanager
def stores(name: str) -> Iterator[Open]:
    """The stores of this name, as long as one is inside."""
    if name == "memory":
        yield in_memory
        return
    if name == "embedded":
        with tempfile.TemporaryDirectory() as folder:
            yield embedded(Path(folder))
        return
    postgres, redis = PostgresServer.create(), RedisServer.create()
    try:
        dsn = postgres.database("leak")
        options = options_for(dsn)
        with_vectors(dsn)
        migrate(options)
        address = urlsplit(redis.url)
        yield company(options, (str(address.hostname), int(address.port or 0)))
    finally:
        postgres.close()
        redis.close()


def with_vectors(dsn: str) -> None:
    """Adds pgvector to a database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")


def tell(name: str, seed: int, verdicts: Verdicts) -> None:
    """Writes what was found to the standard output."""
    calls, checks = sum(verdicts.calls.values()), dict(verdicts.checks)
    lines = [
        f"{name}: seed {seed}, {calls} calls of {len(verdicts.calls)} RPCs, {dict(verdicts.codes)}",
        f"  checks {checks}; markers rightly shown {verdicts.shown}; degraded searches {verdicts.degraded}",
        f"  faults {dict(verdicts.faults) or 'none'}",
        *(f"  {each}" for each in verdicts.told),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.leak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each sort of stores")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", choices=STORES, action="append", help="default: embedded and company")
    parser.add_argument("--no-conditions", action="store_true", help="no grants with conditions")
    given = parser.parse_args(arguments)
    found = False
    for name in given.stores or ("embedded", "company"):
        with stores(name) as opened:
            plan = Plan(given.seed, given.seconds, given.rounds, conditions=not given.no_conditions)
            verdicts = asyncio.run(run(plan, opened))
        tell(name, given.seed, verdicts)
        found = found or bool(verdicts.faults)
    return int(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
