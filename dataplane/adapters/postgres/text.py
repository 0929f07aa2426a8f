"""TextIndex on PostgreSQL: a tsvector of our tokens finds memories, and SQL scores them by BM25.

PostgreSQL's own ranking (`ts_rank`) knows no document frequencies and takes a second for many matches. Here each entry
keeps the weights of its tokens, and one statement reads the matches of the scope once: it counts how many hold each
token and sums weight × inverse frequency, so that scores depend on the scope alone. No text search configuration is
involved: tokens go in as lexemes as they are.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

from dataplane.adapters.postgres import index_opening
from dataplane.adapters.postgres.clauses import Parameters, fill, in_scope, passes
from dataplane.adapters.postgres.index_entries import IndexEntries, IndexOfEntries, latest, row_of
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Pool
from dataplane.logic.bm25 import term_weights
from dataplane.model import Candidate, Filter, IndexEntry, Scope

BACKEND: Final = "text_index"
MAX_SCORED: Final = 50
"""Distinct tokens of a query that give a score, the first; later ones only match. Unmeasured."""
_PLAIN = re.compile(r"[\w\-/.@]{1,200}")
"""What can stand in a quoted lexeme as it is."""
_UPSERT = """
INSERT INTO memplane.text_entries AS m
    (tokenizer, memory_id, version, namespace, pool, fields, fingerprint, terms, tokens, weights)
SELECT %(tokenizer)s, r.memory_id, r.version, r.namespace, r.pool, r.fields::jsonb, r.fingerprint,
    array_to_tsvector(r.tokens), r.tokens, r.weights
FROM jsonb_to_recordset(%(rows)s::text::jsonb) AS r (memory_id text, version bigint, namespace text, pool smallint,
    fields text, fingerprint text, tokens text[], weights real[])
ON CONFLICT (tokenizer, memory_id) DO UPDATE SET version = excluded.version, namespace = excluded.namespace,
    pool = excluded.pool, fields = excluded.fields, fingerprint = excluded.fingerprint, terms = excluded.terms,
    tokens = excluded.tokens, weights = excluded.weights
WHERE m.version <= excluded.version"""
_SEARCH = """
WITH matches AS MATERIALIZED (
    SELECT m.memory_id, m.version, {passes} AS passes, {weights}
    FROM memplane.text_entries AS m
    WHERE m.terms @@ %(query)s::text::tsquery AND m.tokenizer = %(tokenizer)s::text AND {scope}),
scope AS (SELECT count(*)::float8 AS memories FROM memplane.text_entries AS m
    WHERE m.tokenizer = %(tokenizer)s::text AND {scope}),
counts AS (SELECT {counts} FROM matches),
telling AS MATERIALIZED (SELECT {telling} FROM scope, counts),
best AS (SELECT matches.*, {score} AS score FROM matches, telling
    WHERE passes ORDER BY score DESC LIMIT %(top_k)s::bigint)
SELECT memory_id, version, score, {held} FROM best ORDER BY score DESC"""
# Robertson and Zaragoza 2009, as in logic.bm25.inverse_frequency.
_TELLING = "ln(1::float8 + (memories - c{n} + 0.5::float8) / (c{n} + 0.5::float8)) AS i{n}"


class PostgresTextIndex(IndexOfEntries):
    """Full text in PostgreSQL; `open` makes one."""

    def __init__(self, pool: Pool, tokenizer: str) -> None:
        mine = "m.tokenizer = %(tokenizer)s::text"
        super().__init__(pool, IndexEntries(pool, BACKEND, "text_entries", mine, {"tokenizer": tokenizer}))
        self._tokenizer = tokenizer

    @classmethod
    async def open(cls, options: PostgresOptions, tokenizer: str, deadline_s: float) -> "PostgresTextIndex":
        """Connects and checks the schema. Each tokenizer has entries of its own.

        Raises Misconfigured and BackendUnavailable.
        """
        await index_opening.check(options, BACKEND, deadline_s)
        return cls(await Pool.open(options.dsn, options, BACKEND), tokenizer)

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        await self._entries.upsert(_UPSERT, [_row(entry) for entry in latest(entries)], deadline_s)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port. Reads every match of the scope: a common word in a large namespace takes its time."""
        self._pool.check(deadline_s)
        asked = tuple(dict.fromkeys(tokens))
        if not asked:
            return []
        statement, parameters = _search(scope, asked, filter)
        parameters |= {"tokenizer": self._tokenizer, "top_k": top_k}
        return [
            Candidate(memory_id, version, score, tuple(asked[number] for number in held))
            for memory_id, version, score, held in await self._pool.read(scope, statement, parameters, deadline_s)
        ]


def _search(scope: Scope, asked: Sequence[str], filter: Filter) -> tuple[str, Parameters]:
    in_it, parameters = in_scope(scope, "m")
    passing, more = passes(filter)
    lexemes = [_lexeme(token) for token in asked]
    scored = range(min(len(asked), MAX_SCORED))
    statement = fill(
        _SEARCH,
        scope=in_it,
        passes=passing,
        weights=", ".join(f"m.weights[array_position(m.tokens, %(t{n})s::text)] AS w{n}" for n in scored),
        counts=", ".join(f"count(w{n})::float8 AS c{n}" for n in scored),
        telling=", ".join(fill(_TELLING, n=str(n)) for n in scored),
        score=" + ".join(f"coalesce(w{n} * i{n}, 0)" for n in scored),
        held="array_remove(ARRAY[" + ", ".join(f"CASE WHEN w{n} > 0 THEN {n} END" for n in scored) + "], NULL)",
    )
    sought = {f"t{n}": lexemes[n] for n in scored}
    query = " | ".join(f"'{lexeme}'" for lexeme in lexemes)
    return statement, {**parameters, **more, **sought, "query": query}


def _row(entry: IndexEntry) -> dict[str, Any]:
    weights = dict(_weights(entry.tokens))
    return {**row_of(entry), "tokens": list(weights), "weights": list(weights.values())}


def _weights(tokens: Sequence[str]) -> Iterator[tuple[str, float]]:
    for token, weight in sorted(term_weights(Counter(tokens)).items()):
        yield _lexeme(token), weight


def _lexeme(token: str) -> str:
    """The lexeme of a token: itself, or a hash of what a lexeme cannot be."""
    if _PLAIN.fullmatch(token):
        return token
    return "#" + blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
