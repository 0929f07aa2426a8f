"""What the indexes on PostgreSQL promise beyond their ports, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Pool
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.errors import EntriesRefused, Misconfigured
from dataplane.logic.tokens import query_tokens, tokens
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, Condition, Operator, Scope, Vector
from dataplane.model import Pool as Visibility
from memplane.settings import Secret
from tests.contract.index_suite import DIMENSION, A, B, deadline, entry, ids, upsert
from tests.contract.pgvector import with_pgvector
from tests.postgres import options_for

TEXTS = ["red pump red", "blue pump", "a red valve and a long tail of many other words", "中文 pump pump pump", "none"]


@pytest.fixture
async def texts(postgres_options: PostgresOptions) -> AsyncIterator[PostgresTextIndex]:
    opened = await PostgresTextIndex.open(postgres_options, "rule-1", deadline())
    yield opened
    await opened.close()


@pytest.fixture
async def vectors(postgres_options: PostgresOptions) -> AsyncIterator[PostgresVectorIndex]:
    opened = await PostgresVectorIndex.open(with_pgvector(postgres_options), "model-1", DIMENSION, deadline())
    yield opened
    await opened.close()


def drawn(number: int, dimension: int = DIMENSION) -> list[Vector]:
    rows = np.random.default_rng(5).standard_normal((number, dimension)).astype(np.float32)
    return list(rows / np.linalg.norm(rows, axis=1, keepdims=True))


async def test_scores_are_those_of_the_reference(texts: PostgresTextIndex) -> None:
    reference = InMemoryTextIndex()
    for index in (texts, reference):
        places = {text: "dept.b" if "blue" in text else "dept.a" for text in TEXTS}
        await upsert(index, [entry(text, place, tokens=tokens(text)) for text, place in places.items()])
    for scope in (A, B, Scope(("dept.a", "dept.b")), SYSTEM_SCOPE):
        asked = query_tokens("red pump 中文")
        got = await texts.search(scope, asked, EVERYTHING, 10, deadline())
        want = await reference.search(scope, asked, EVERYTHING, 10, deadline())
        assert ids(got) == ids(want)
        assert [hit.score for hit in got] == pytest.approx([hit.score for hit in want], rel=1e-5)


async def test_a_hit_names_the_tokens_it_holds(texts: PostgresTextIndex) -> None:
    await upsert(texts, [entry("one", tokens=("red", "pump", "a b")), entry("two", tokens=("blue",))])
    found = await texts.search(A, ("blue", "a b", "green", "red"), EVERYTHING, 10, deadline())
    assert {hit.memory_id: hit.terms for hit in found} == {"one": ("a b", "red"), "two": ("blue",)}


async def test_a_query_of_ten_thousand_tokens_finds_by_each(texts: PostgresTextIndex) -> None:
    asked = [f"t{number}" for number in range(10_000)]
    await upsert(texts, [entry(name, tokens=(name,)) for name in ("t0", "t900", "t9999", "other")])
    assert set(ids(await texts.search(A, asked, EVERYTHING, 10, deadline()))) == {"t0", "t900", "t9999"}


async def test_an_older_version_never_replaces_a_newer_one(
    texts: PostgresTextIndex, vectors: PostgresVectorIndex
) -> None:
    for index in (texts, vectors):
        await index.upsert([entry("one", version=5)], deadline())
        await index.upsert([entry("one", version=4), entry("two", version=1)], deadline())
        found = await index.versions(deadline())
        assert {memory_id: held.version for memory_id, held in found.items()} == {"one": 5, "two": 1}


async def test_one_entry_that_cannot_be_kept_leaves_the_others(
    texts: PostgresTextIndex, vectors: PostgresVectorIndex
) -> None:
    for index in (texts, vectors):
        with pytest.raises(EntriesRefused) as refused:
            await index.upsert([entry("one"), entry("bad\0"), entry("two")], deadline())
        assert set(refused.value.reasons) == {"bad\0"}
        assert set(await index.versions(deadline())) == {"one", "two"}


async def test_a_query_that_forgets_its_scope_sees_that_scope_alone(
    texts: PostgresTextIndex, vectors: PostgresVectorIndex, postgres_options: PostgresOptions
) -> None:
    entries = [
        entry("own"),
        entry("theirs", "dept.b"),
        entry("shared", "dept.c", pool=Visibility.SHARED),
        entry("hidden", "dept.c"),
    ]
    await texts.upsert(entries, deadline())
    await vectors.upsert(entries, deadline())
    pool = await Pool.open(postgres_options.dsn, postgres_options)
    (table,) = (await pool.read(A, "SELECT table_name FROM memplane.vector_tables", {}, deadline()))[0]
    for name in ("text_entries", table):
        for scope, seen in ((A, {"own"}), (Scope(("dept.a",), ("dept.c",)), {"own", "shared"}), (Scope(()), set())):
            rows = await pool.read(scope, f"SELECT memory_id FROM memplane.{name}", {}, deadline())
            assert {row[0] for row in rows} == seen
    await pool.close()


async def test_a_selective_filter_drops_no_hit(vectors: PostgresVectorIndex) -> None:
    points = drawn(3000)
    entries = [
        entry(str(number), embedding=point, fields={"sequence": number % 100}) for number, point in enumerate(points)
    ]
    await vectors.upsert(entries, deadline())
    rare = Condition("sequence", Operator.EQUALS, (7,))
    found = await vectors.search(A, points[0], rare, 30, 64, deadline())
    best = sorted(range(7, 3000, 100), key=lambda number: -float(points[number] @ points[0]))
    assert ids(found) == [str(number) for number in best]


async def test_one_model_at_a_time_is_active_and_each_has_its_vectors(
    vectors: PostgresVectorIndex, postgres_options: PostgresOptions
) -> None:
    other = await PostgresVectorIndex.open(postgres_options, "model-2", 3, deadline())
    await vectors.upsert([entry("one")], deadline())
    await other.upsert([entry("one", embedding=np.ones(3, dtype=np.float32))], deadline())
    assert await vectors.active_model(deadline()) == ""
    for index, name in ((vectors, "model-1"), (other, "model-2"), (other, "model-2"), (vectors, "model-1")):
        await index.activate(deadline())
        assert await vectors.active_model(deadline()) == await other.active_model(deadline()) == name
    await other.clear(deadline())
    assert (await vectors.count(deadline()), await other.count(deadline())) == (1, 0)
    await other.close()


async def test_data_planes_that_start_together_make_one_table(postgres_options: PostgresOptions) -> None:
    options = with_pgvector(postgres_options)
    opened = await asyncio.gather(*[PostgresVectorIndex.open(options, "model-3", 4, deadline()) for _ in range(4)])
    await opened[0].upsert([entry("one", embedding=np.ones(4, dtype=np.float32))], deadline())
    assert await opened[3].count(deadline()) == 1
    for index in opened:
        await index.close()


async def test_another_dimension_is_told(vectors: PostgresVectorIndex, postgres_options: PostgresOptions) -> None:
    with pytest.raises(Misconfigured, match="model-1 have another dimension than 9; configure"):
        await PostgresVectorIndex.open(postgres_options, "model-1", 9, deadline())
    with pytest.raises(Misconfigured, match="has 3000 dimensions; pgvector indexes up to 2000"):
        await PostgresVectorIndex.open(postgres_options, "model-1", 3000, deadline())


async def test_a_missing_extension_is_told_with_what_to_do(new_postgres_options: PostgresOptions) -> None:
    with pytest.raises(Misconfigured, match="let a superuser of the server run CREATE EXTENSION vector"):
        await PostgresVectorIndex.open(new_postgres_options, "model-1", 4, deadline())


async def test_pgvector_in_a_schema_of_its_own_will_do(new_postgres_options: PostgresOptions) -> None:
    assert new_postgres_options.migrate_dsn
    with psycopg.connect(new_postgres_options.migrate_dsn, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "Odd ext"; CREATE EXTENSION vector SCHEMA "Odd ext"')
        connection.execute('GRANT USAGE ON SCHEMA "Odd ext" TO PUBLIC')
    index = await PostgresVectorIndex.open(new_postgres_options, "model-1", DIMENSION, deadline())
    await index.upsert([entry("one")], deadline())
    assert ids(await index.search(A, drawn(1)[0], EVERYTHING, 5, 64, deadline())) == ["one"]
    await index.close()
    assert migrate(new_postgres_options) == [], "a table made while running needs no further rights"


async def test_a_missing_schema_and_a_wrong_password_are_told(postgres_database_factory: Callable[[], str]) -> None:
    options = options_for(postgres_database_factory())
    owner = replace(options, dsn=options.migrate_dsn or Secret(""))
    for opening in (PostgresTextIndex.open(owner, "rule-1", deadline()),):
        with pytest.raises(Misconfigured, match="run memplane migrate"):
            await opening
    wrong = replace(options, dsn=Secret(options.dsn.replace("app-of-the-tests", "wrong")))
    with pytest.raises(Misconfigured, match="text_index: the password or the role"):
        await PostgresTextIndex.open(wrong, "rule-1", deadline())
