"""VectorIndex on PostgreSQL with pgvector: a table with an HNSW index for each embedding model.

The planner chooses between HNSW and reading the scope exactly. HNSW goes on scanning until the filter has let enough
through (iterative scan); where its limits end the scan too early, the scope is read exactly, so that no hit is lost.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from psycopg.sql import Identifier

from dataplane.adapters.postgres import index_opening
from dataplane.adapters.postgres.clauses import Parameters, fill, in_scope, passes
from dataplane.adapters.postgres.index_entries import IndexEntries, IndexOfEntries, latest, row_of
from dataplane.adapters.postgres.index_opening import NOBODY
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Pool
from dataplane.errors import Misconfigured
from dataplane.model import SYSTEM_SCOPE, Candidate, Filter, IndexEntry, Scope, Vector

BACKEND: Final = "vector_index"
MAX_DIMENSION: Final = 2000
"""Largest vector that pgvector's HNSW takes."""
MAX_EF: Final = 1000
"""Largest `hnsw.ef_search`."""
_OLDEST: Final = (0, 8)
_EXTENSION = """
SELECT e.extversion, n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'"""
_MAKE = "SELECT memplane.make_vector_table(%(model)s::text, %(dimension)s::integer)"
_UPSERT = """
INSERT INTO memplane.{table} AS m (memory_id, version, namespace, pool, fields, fingerprint, embedding)
SELECT r.memory_id, r.version, r.namespace, r.pool, r.fields::jsonb, r.fingerprint, r.embedding::{vector}
FROM jsonb_to_recordset(%(rows)s::text::jsonb) AS r (memory_id text, version bigint, namespace text, pool smallint,
    fields text, fingerprint text, embedding text)
ON CONFLICT (memory_id) DO UPDATE SET version = excluded.version, namespace = excluded.namespace, pool = excluded.pool,
    fields = excluded.fields, fingerprint = excluded.fingerprint, embedding = excluded.embedding
WHERE m.version <= excluded.version"""
# The vector is a parameter of its own type, read once: cast from text, a prepared statement reads it for every row.
_SEARCH = """
SELECT m.memory_id, m.version, 1 - (m.embedding {distance} %(vector)s::{vector}) FROM memplane.{table} AS m
WHERE {scope} AND {filter}
ORDER BY m.embedding {distance} %(vector)s::{vector} LIMIT %(top_k)s::bigint"""
_APPROXIMATE = """
SELECT set_config('hnsw.ef_search', %(ef)s::text, true), set_config('hnsw.iterative_scan', 'strict_order', true)"""
_EXACT = "SELECT set_config('enable_indexscan', 'off', true)"
_ACTIVE = "SELECT model FROM memplane.vector_tables WHERE is_active"
_DEACTIVATE = "UPDATE memplane.vector_tables SET is_active = false WHERE is_active AND model <> %(model)s::text"
_ACTIVATE = "UPDATE memplane.vector_tables SET is_active = true WHERE model = %(model)s::text AND NOT is_active"


class PostgresVectorIndex(IndexOfEntries):
    """Nearest neighbours in PostgreSQL; `open` makes one. Raises ValueError for what is no vector of this index."""

    def __init__(self, pool: Pool, model: str, dimension: int, names: dict[str, str]) -> None:
        super().__init__(pool, IndexEntries(pool, BACKEND, names["table"], "true", {}))
        self._model = model
        self._dimension = dimension
        self._names = names

    @classmethod
    async def open(
        cls, options: PostgresOptions, model: str, dimension: int, deadline_s: float
    ) -> "PostgresVectorIndex":
        """Connects, checks schema and extension, and makes the model's table where it is missing.

        Raises Misconfigured and BackendUnavailable.
        """
        if dimension > MAX_DIMENSION:
            raise Misconfigured(BACKEND, f"{model} has {dimension} dimensions; pgvector indexes up to {MAX_DIMENSION}")
        await index_opening.check(options, BACKEND, deadline_s)
        pool = await Pool.open(options.dsn, options, BACKEND)
        try:
            names = await _prepare(pool, model, dimension, deadline_s)
        except BaseException:
            await pool.close()
            raise
        return cls(pool, model, dimension, names)

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        rows = [self._row(entry) for entry in latest(entries)]
        await self._entries.upsert(fill(_UPSERT, **self._names), rows, deadline_s)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        self._pool.check(deadline_s)
        in_it, parameters = in_scope(scope, "m")
        passing, more = passes(filter)
        statement = fill(_SEARCH, scope=in_it, filter=passing, **self._names)
        parameters = {**parameters, **more, "vector": self._text(vector), "top_k": top_k}
        breadth = {"ef": min(max(ef, top_k), MAX_EF)}
        rows = await self._pool.transact(scope, [(_APPROXIMATE, breadth), (statement, parameters)], deadline_s)
        if len(rows) < top_k:
            rows = await self._pool.transact(scope, [(_EXACT, {}), (statement, parameters)], deadline_s)
        return [Candidate(*row) for row in rows]

    async def active_model(self, deadline_s: float) -> str:
        """See the port."""
        rows = await self._pool.read(NOBODY, _ACTIVE, {}, deadline_s)
        return str(rows[0][0]) if rows else ""

    async def activate(self, deadline_s: float) -> None:
        """See the port."""
        mine: Parameters = {"model": self._model}
        await self._pool.transact(SYSTEM_SCOPE, [(_DEACTIVATE, mine), (_ACTIVATE, mine)], deadline_s)

    def _row(self, entry: IndexEntry) -> dict[str, Any]:
        if entry.embedding is None:
            raise ValueError(f"{entry.memory_id} has no embedding; a vector index needs one")
        return {**row_of(entry), "embedding": self._text(entry.embedding)}

    def _text(self, vector: Vector) -> str:
        if vector.shape != (self._dimension,):
            raise ValueError(f"a vector has shape {vector.shape}; this index holds ({self._dimension},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("a vector is zero or not finite")
        return str(vector.tolist())


async def _prepare(pool: Pool, model: str, dimension: int, deadline_s: float) -> dict[str, str]:
    """The names of the model's table and of pgvector's type and operator."""
    version, schema = await _extension(pool, deadline_s)
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        advice = "install 0.8 or newer and run ALTER EXTENSION vector UPDATE"
        raise Misconfigured(BACKEND, f"pgvector {version} loses hits of a filtered search; {advice}")
    [(table,)] = await pool.read(NOBODY, _MAKE, {"model": model, "dimension": dimension}, deadline_s)
    if table is None:
        advice = "configure the dimension it was made with, or give the other model another name"
        raise Misconfigured(BACKEND, f"the vectors of {model} have another dimension than {dimension}; {advice}")
    quoted = Identifier(schema).as_string()
    return {"table": table, "vector": f"{quoted}.vector", "distance": f"OPERATOR({quoted}.<=>)"}


async def _extension(pool: Pool, deadline_s: float) -> tuple[str, str]:
    """Version and schema of pgvector."""
    rows = await pool.read(NOBODY, _EXTENSION, {}, deadline_s)
    if not rows:
        advice = "let a superuser of the server run CREATE EXTENSION vector in this database"
        raise Misconfigured(BACKEND, f"pgvector is missing; {advice}")
    return rows[0][0], rows[0][1]
