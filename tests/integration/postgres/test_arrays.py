"""Arrays that are encoded here are what the server reads."""

import psycopg
import pytest

from dataplane.adapters.postgres.arrays import Array, adapters, bigints, byteas, floats, listed, smallints, texts
from dataplane.adapters.postgres.options import PostgresOptions


@pytest.mark.parametrize(
    ("array", "type_name", "values"),
    [
        (texts(["a", None, "", '键\n"{}']), "text[]", ["a", None, "", '键\n"{}']),
        (texts([]), "text[]", []),
        (byteas([b"\0\xff", b""]), "bytea[]", [b"\0\xff", b""]),
        (bigints([-(2**63), 2**63 - 1]), "bigint[]", [-(2**63), 2**63 - 1]),
        (bigints([None, 7]), "bigint[]", [None, 7]),
        (smallints([-5, 6]), "smallint[]", [-5, 6]),
        (floats([0.1, -5e-324]), "double precision[]", [0.1, -5e-324]),
    ],
)
def test_an_array_arrives_as_it_was(
    migrated_postgres: PostgresOptions, array: Array, type_name: str, values: list[object]
) -> None:
    with psycopg.connect(migrated_postgres.dsn, autocommit=True, context=adapters()) as connection:
        cursor = connection.cursor(binary=True)
        [(found, seen)] = cursor.execute("SELECT %(a)s, pg_typeof(%(a)s)::text", {"a": array}).fetchall()
    assert (found, seen) == (values, type_name)


def test_rows_become_one_array_a_column() -> None:
    columns = listed({"a": texts, "b": bigints}, [("x", 1), ("y", 2)])
    assert columns["a"].data == texts(["x", "y"]).data
    assert columns["b"].data == bigints([1, 2]).data
    assert listed({"a": texts}, [])["a"].data == texts([]).data
