"""TextIndex on Elasticsearch: BM25 with the frequencies of the scope over tokens that we make (see `terms`)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataplane.adapters.elasticsearch import beacons, upkeep
from dataplane.adapters.elasticsearch.bulk import HELD, BulkWriter, Item, deleting, document_id, fetch, indexing
from dataplane.adapters.elasticsearch.connection import BACKEND, Connection, IndexMissing
from dataplane.adapters.elasticsearch.filters import MEMORY, translate, translate_scope
from dataplane.adapters.elasticsearch.layout import ROW, Layout
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.paging import Hit, every_hit
from dataplane.adapters.elasticsearch.purging import Purging, check_shards
from dataplane.adapters.elasticsearch.terms import MAX_COUNTED, Query, best_matches, holding
from dataplane.adapters.payload_filters import passes, rows_in
from dataplane.errors import BackendUnavailable
from dataplane.logic.bm25 import inverse_frequency
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope
from dataplane.ports import Examination

PAGE = 10_000
"""Most hits of one answer (`index.max_result_window`)."""
FETCHED = 1000
"""Memories looked up by id in one request. Unmeasured."""
MAX_ROUTING_CHARACTERS = 2000
"""Routing goes into the URL, whose line a server bounds at 4 KiB; a scope of more namespaces asks every shard."""
LEAN = {"source": False, "stored_fields": "_none_", "docvalue_fields": ["memory_id", "version"]}
"""Ids and versions come from columns; no document is read."""
_FOR_CHECKING = {"source": ["memory_id", "version", "payload_terms"]}


@dataclass(frozen=True, slots=True)
class _Asked:
    scope: Scope
    tokens: tuple[str, ...]
    filter: Filter
    top_k: int


class ElasticsearchTextIndex:
    """Full text in Elasticsearch; `open` makes one.

    Written is durable at once and found after `flush`. A namespace is the routing of its memories: a search asks only
    the shards of its scope. A memory that moved to another namespace must be deleted from the one before.
    """

    def __init__(self, connection: Connection, layout: Layout, options: ElasticsearchOptions, recreated: bool) -> None:
        self._connection = connection
        self._layout = layout
        self._writer = BulkWriter(connection, layout.alias, options.bulk_bytes, options.bulk_documents)
        self._purging = Purging(connection, layout.alias)
        self.recreated = recreated
        """True when `open` made the index: everything must be projected into it."""

    @classmethod
    async def open(cls, options: ElasticsearchOptions, tokenizer: str) -> "ElasticsearchTextIndex":
        """Connects, makes template and index where they are missing, and checks them.

        `tokenizer` names the rule that makes the tokens; each has an index of its own. Raises Misconfigured and
        BackendUnavailable.
        """
        connection = Connection.create(options)
        layout = Layout.of(options, tokenizer)
        deadline_s = asyncio.get_running_loop().time() + options.open_timeout_s
        try:
            recreated = await upkeep.prepare(connection, layout, deadline_s)
        except BaseException:
            await connection.close()
            raise
        return cls(connection, layout, options, recreated)

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        latest = {entry.memory_id: entry for entry in entries}
        await self._write([indexing(entry) for entry in latest.values()], deadline_s)

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        await self._write([deleting(key) for key in keys], deadline_s)

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port. Of a query of more than 1,000 tokens, later ones match but do not score."""
        asked = _Asked(scope, tuple(dict.fromkeys(tokens)), filter, top_k)
        if not asked.tokens or top_k < 1 or scope == Scope(()):
            return []
        telling = await self._inverse_frequencies(scope, asked.tokens[:MAX_COUNTED], deadline_s)
        translation = translate(filter)
        query = best_matches(telling, asked.tokens, [*translate_scope(scope), *translation.conditions])
        if not translation.exact or top_k > PAGE:
            body = {"query": query, "sort": ["_score"], "size": min(PAGE, 4 * top_k), **_FOR_CHECKING}
            return await self._checked(asked, body, deadline_s)
        answer = await self._search(
            scope, {"query": query, "size": top_k, "track_total_hits": False, **LEAN}, deadline_s
        )
        return [
            _candidate(hit, hit["fields"]["memory_id"][0], hit["fields"]["version"][0], asked.tokens)
            for hit in answer["hits"]["hits"]
        ]

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        lean = {**LEAN, "docvalue_fields": list(HELD)}
        everything = {"query": MEMORY, "sort": ["_shard_doc"], "size": PAGE, **lean}
        async with every_hit(self._connection, self._layout.alias, None, everything, deadline_s) as hits:
            rows = [[hit["fields"][field][0] for field in HELD] async for hit in hits]
        return {memory_id: Held(*values) for memory_id, *values in rows}

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port. Also what was written and is not found by searches yet."""
        held: dict[str, Held] = {}
        for start in range(0, len(keys), FETCHED):
            asked = keys[start : start + FETCHED]
            found = await fetch(self._connection, self._layout.alias, asked, deadline_s)
            sources = [document["_source"] for document in found if document.get("found")]
            rows = [[source[field] for field in HELD] for source in sources]
            held |= {memory_id: Held(*values) for memory_id, *values in rows}
        return held

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        answer = await self._connection.require(
            lambda client: client.count(index=self._layout.alias, query=MEMORY), deadline_s
        )
        return int(answer["count"])

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        rows: dict[str, bytes] = {}
        for start in range(0, len(memory_ids) if scope != Scope(()) else 0, FETCHED):
            asked = {"ids": {"values": [document_id(each) for each in memory_ids[start : start + FETCHED]]}}
            query = {"bool": {"filter": [asked, *translate_scope(scope)]}}
            body = {"query": query, "size": FETCHED, "track_total_hits": False, "source": ["memory_id", ROW]}
            answer = await self._search(scope, body, deadline_s)
            rows |= rows_in(hit["_source"] for hit in answer["hits"]["hits"])
        return rows

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port; none while the index is gone."""
        return await beacons.read(self._connection, self._layout.alias, deadline_s)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port. Raises BackendUnavailable when the index was gone; it is there again, empty."""
        try:
            await beacons.save(self._connection, self._layout.alias, name, value, deadline_s)
        except IndexMissing as error:
            await upkeep.make_again(self._connection, self._layout, deadline_s)
            raise BackendUnavailable(BACKEND, "the index was gone and was made anew, empty") from error

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        answer = await self._connection.require(
            lambda client: client.indices.refresh(index=self._layout.alias), deadline_s
        )
        check_shards(answer)

    async def purge(self, deadline_s: float) -> None:
        """See the port. NotYet for what was written in the last half minute. Past the deadline the server goes on."""
        await self._purging.run(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        await upkeep.replace(self._connection, self._layout, deadline_s)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        return await upkeep.examine(self._connection, self._layout, deadline_s)

    async def close(self) -> None:
        """See the port."""
        await self._connection.close()

    async def _write(self, items: Sequence[Item], deadline_s: float) -> None:
        """Writes, also when somebody deleted the index: it is made anew as it must be, never by the server itself."""
        try:
            await self._writer.write(items, deadline_s)
        except IndexMissing:
            await upkeep.make_again(self._connection, self._layout, deadline_s)
            await self._writer.write(items, deadline_s)

    async def _inverse_frequencies(self, scope: Scope, tokens: Sequence[str], deadline_s: float) -> dict[str, float]:
        """How telling each token is among the memories of the scope."""
        inside: Query = {"bool": {"filter": translate_scope(scope)}}
        counting = {"holding": {"filters": {"filters": [holding(token) for token in tokens]}}}
        body = {"query": inside, "size": 0, "track_total_hits": True, "aggs": counting}
        answer = await self._search(scope, body, deadline_s)
        memories = answer["hits"]["total"]["value"]
        counts = [bucket["doc_count"] for bucket in answer["aggregations"]["holding"]["buckets"]]
        return {token: inverse_frequency(memories, count) for token, count in zip(tokens, counts, strict=True)}

    async def _checked(self, asked: _Asked, body: Mapping[str, Any], deadline_s: float) -> list[Candidate]:
        """The best that truly pass the filter, read page by page until there are enough."""
        kept: list[Candidate] = []
        routing = _routing(asked.scope)
        async with every_hit(self._connection, self._layout.alias, routing, body, deadline_s) as hits:
            async for hit in hits:
                if passes(asked.filter, hit["_source"]["payload_terms"]):
                    kept.append(_candidate(hit, hit["_source"]["memory_id"], hit["_source"]["version"], asked.tokens))
                if len(kept) == asked.top_k:
                    break
        return kept

    async def _search(self, scope: Scope, body: Mapping[str, Any], deadline_s: float) -> Any:
        routing = _routing(scope)
        return await self._connection.require(
            lambda client: client.search(
                index=self._layout.alias, routing=routing, allow_partial_search_results=False, **body
            ),
            deadline_s,
        )


def _candidate(hit: Hit, memory_id: str, version: int, tokens: Sequence[str]) -> Candidate:
    held = sorted(int(number) for number in hit.get("matched_queries", ()))
    return Candidate(memory_id, version, hit["_score"], tuple(tokens[number] for number in held))


def _routing(scope: Scope) -> str | None:
    if scope.system:
        return None
    namespaces = ",".join(dict.fromkeys((*scope.namespaces, *scope.shared)))
    return namespaces if len(namespaces) <= MAX_ROUTING_CHARACTERS else None
