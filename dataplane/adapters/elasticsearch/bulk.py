"""Writing in bulk, with the outcome of each item.

The memory's version is the document's (`external_gte`), so that an older one never replaces a newer one. A delete
leaves a tombstone whose version is one higher and which the server forgets after a minute: a memory indexed again until
then is told to conflict. So conflicts are looked into: what is newer stays, the rest is written on condition that
nobody else did meanwhile.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from dataplane.adapters.elasticsearch.connection import BACKEND, Connection, Refused, unavailable
from dataplane.adapters.elasticsearch.filters import filterable
from dataplane.adapters.elasticsearch.layout import ROW
from dataplane.adapters.elasticsearch.terms import indexed
from dataplane.adapters.payload_filters import encode, row_text
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import IndexEntry, IndexKey, Pool

HELD = ("memory_id", "version", "namespace", "fingerprint")
MAX_ID_BYTES = 512
ROUNDS = 3
"""How often a conflict is looked into before the batch is left to the next try. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Item:
    """One operation of a bulk request: its action line and, unless it deletes, the document."""

    memory_id: str
    namespace: str
    version: int
    action: str
    document: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """As it is sent."""
        return (self.action, self.document) if self.document else (self.action,)

    @property
    def size_bytes(self) -> int:
        """How much of the request it takes; JSON is ASCII here."""
        return len(self.action) + len(self.document) + 2

    def on_condition(self, found: Mapping[str, Any]) -> "Item":
        """The same document, written only where the server still holds what was found."""
        where = {"_id": document_id(self.memory_id), "routing": self.namespace}
        if not found.get("found"):
            action = {"create": where}
        else:
            action = {"index": {**where, "if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}}
        return Item(self.memory_id, self.namespace, self.version, json.dumps(action), self.document)


@dataclass
class _Outcome:
    """What became of the items of a batch."""

    refused: dict[str, str] = field(default_factory=dict)
    conflicts: list[Item] = field(default_factory=list)
    trouble: BackendUnavailable | None = None

    def take(self, item: Item, status: int, kind: str) -> None:
        if status < 300 or (status == 404 and not item.document and not kind):
            return
        if status == 409 and item.document:
            self.conflicts.append(item)
        elif status in (400, 413):
            self.refused[item.memory_id] = f"Elasticsearch refuses it ({kind or status})"
        else:
            self.trouble = unavailable(status, kind)


def document_id(memory_id: str) -> str:
    """The `_id` of a memory: its own, or a hash of one that is too long for it or begins as hashes do."""
    encoded = memory_id.encode("utf-8", "surrogatepass")
    plain = len(encoded) <= MAX_ID_BYTES and not memory_id.startswith("#")
    return memory_id if plain else "#" + blake2b(encoded, digest_size=32).hexdigest()


def indexing(entry: IndexEntry) -> Item:
    """The operation that brings the index to an entry."""
    where = {"_id": document_id(entry.memory_id), "routing": entry.namespace}
    action = {"index": {**where, "version": entry.version, "version_type": "external_gte"}}
    return Item(entry.memory_id, entry.namespace, entry.version, json.dumps(action), _document(entry))


def deleting(key: IndexKey) -> Item:
    """The operation that removes a memory."""
    action = {"delete": {"_id": document_id(key.memory_id), "routing": key.namespace}}
    return Item(key.memory_id, key.namespace, 0, json.dumps(action))


class BulkWriter:
    """Sends items in requests of bounded size, one after another."""

    def __init__(self, connection: Connection, alias: str, max_bytes: int, max_items: int) -> None:
        self._connection = connection
        self._alias = alias
        self._max_bytes = max_bytes
        self._max_items = max_items

    async def write(self, items: Sequence[Item], deadline_s: float) -> None:
        """Everything that can be is written, then what cannot is raised.

        BackendUnavailable when trying all again may help (it does no harm), else EntriesRefused.
        """
        outcome = await self._send_all(items, deadline_s)
        refused = dict(outcome.refused)
        for _ in range(ROUNDS):
            if not outcome.conflicts or outcome.trouble:
                break
            again = await self._still_newer(outcome.conflicts, deadline_s)
            outcome = await self._send_all(again, deadline_s)
            refused |= outcome.refused
        if outcome.conflicts and not outcome.trouble:
            raise BackendUnavailable(BACKEND, "others write the same memories")
        if outcome.trouble:
            raise outcome.trouble
        if refused:
            raise EntriesRefused(BACKEND, refused)

    async def _send_all(self, items: Sequence[Item], deadline_s: float) -> _Outcome:
        outcome = _Outcome()
        for chunk in self._chunks(items):
            await self._send(chunk, outcome, deadline_s)
        return outcome

    def _chunks(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        chunk: list[Item] = []
        size = 0
        for item in items:
            if chunk and (len(chunk) == self._max_items or size + item.size_bytes > self._max_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += item.size_bytes
        if chunk:
            yield chunk

    async def _send(self, chunk: Sequence[Item], outcome: _Outcome, deadline_s: float) -> None:
        lines: list[Any] = [line for item in chunk for line in item.lines]  # the client sends texts as they are
        try:
            answer = await self._connection.ask(
                lambda client: client.bulk(index=self._alias, operations=lines, require_alias=True), deadline_s
            )
        except Refused as refused:
            await self._send_less(chunk, refused, outcome, deadline_s)
            return
        for item, answered in zip(chunk, answer["items"], strict=True):
            (result,) = answered.values()
            outcome.take(item, result["status"], result.get("error", {}).get("type", ""))

    async def _send_less(self, chunk: Sequence[Item], refused: Refused, outcome: _Outcome, deadline_s: float) -> None:
        """What to do when a whole request is refused: halve one that is too large; one item is refused alone."""
        if refused.status in (400, 413) and len(chunk) > 1:
            half = len(chunk) // 2
            await self._send(chunk[:half], outcome, deadline_s)
            await self._send(chunk[half:], outcome, deadline_s)
            return
        for item in chunk:
            outcome.take(item, refused.status, refused.kind)

    async def _still_newer(self, conflicts: Sequence[Item], deadline_s: float) -> list[Item]:
        """Those of the items that are not older than what the server holds, to be written on that condition."""
        keys = [IndexKey(item.memory_id, item.namespace) for item in conflicts]
        found = await fetch(self._connection, self._alias, keys, deadline_s)
        return [
            item.on_condition(held)
            for item, held in zip(conflicts, found, strict=True)
            if not held.get("found") or held["_source"]["version"] <= item.version
        ]


async def fetch(
    connection: Connection, alias: str, keys: Sequence[IndexKey], deadline_s: float
) -> list[Mapping[str, Any]]:
    """What the server holds of these memories, in their order, as it is now: also what no search finds yet."""
    wanted = [{"_id": document_id(key.memory_id), "routing": key.namespace} for key in keys]
    answer = await connection.require(
        lambda client: client.mget(index=alias, docs=wanted, source_includes=list(HELD)),
        deadline_s,
    )
    for held in answer["docs"]:
        if "error" in held:
            raise unavailable(503, held["error"].get("type", ""))
    return list(answer["docs"])


def _document(entry: IndexEntry) -> str:
    encoded = encode(entry.fields)
    terms, numbers = encoded["terms"], encoded["numbers"]
    assert isinstance(terms, list)
    assert isinstance(numbers, dict)
    return json.dumps(
        {
            "memory_id": entry.memory_id,
            "version": entry.version,
            "namespace": entry.namespace,
            "fingerprint": fingerprint(entry),
            "payload_terms": terms,
            **({"shared": entry.namespace} if entry.pool is Pool.SHARED else {}),
            **({ROW: row_text(entry.row)} if entry.row else {}),
            **filterable(terms, numbers),
            **indexed(entry.tokens),
        }
    )
