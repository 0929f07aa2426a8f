"""An index that follows the record store, and how outbox rows become its entries."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dataplane.changes import OutboxRow
from dataplane.codec import parse_body
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.model import IndexEntry, IndexKey, State
from dataplane.pipelines.rescore import Rescoring
from dataplane.ports import Embedder, Index, RecordStore

log = logging.getLogger("memplane.project")

EntryOf = Callable[[OutboxRow], IndexEntry]
DeadlineS = Callable[[], float]
"""Gives the deadline of one step that begins now."""


def always() -> bool:
    """For an index that counts at any time."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """An index that follows the record store.

    `name` is for people ("vector_index"), `target` is the index's name in the outbox. `embedder` makes the embeddings
    that rows lack (None: the index needs none), and `rescoring` looks at those memories again. `own`: the index lies in
    this process's folder, nobody else follows it, and it is compared with the store at every start; else it lies on a
    server and every process helps to fill it. `flush_interval_s`: how long applied entries may wait for a flush; 0 is
    at once. `counts` tells whether searches use it at the moment, so that writes wait for it.
    """

    name: str
    target: str
    index: Index
    entry_of: EntryOf
    embedder: Embedder | None = None
    rescoring: Rescoring | None = None
    own: bool = True
    flush_interval_s: float = 2.0
    counts: Callable[[], bool] = always

    @property
    def model(self) -> str:
        """The embedding model that its entries need; "" for none."""
        return self.embedder.model if self.embedder else ""


class Applier:
    """Brings an index to what rows say."""

    def __init__(self, store: RecordStore, projection: Projection, deadline_s: DeadlineS):
        self._store = store
        self._projection = projection
        self._deadline_s = deadline_s

    async def apply(self, rows: Sequence[OutboxRow]) -> dict[str, str]:
        """Why memories could not be brought into the index, by id; all others are. Raises BackendUnavailable.

        When a whole batch fails for another reason, its rows are tried one by one, so that one bad row holds up no
        other.
        """
        try:
            return await self._together(rows)
        except BackendUnavailable:
            raise
        except Exception:  # a defect, or one row that the index cannot take: it is found by trying each
            log.warning("a batch of %d for %s failed", len(rows), self._projection.name, exc_info=True)
        failed: dict[str, str] = {}
        for row in rows:
            failed.update(await self._alone(row))
        return failed

    async def _alone(self, row: OutboxRow) -> dict[str, str]:
        try:
            return await self._together([row])
        except BackendUnavailable:
            raise
        except Exception as error:  # counted with the row, which is tried again and then given up
            # Its text may quote content, and the reason is shown to those who may not read that.
            log.exception("%s cannot be brought into %s", row.memory_id, self._projection.name)
            return {row.memory_id: f"a defect ({type(error).__name__}); the log says more"}

    async def _together(self, rows: Sequence[OutboxRow]) -> dict[str, str]:
        gone = [IndexKey(row.memory_id, row.namespace) for row in rows if not _is_indexed(row)]
        if gone:
            await self._projection.index.delete(gone, self._deadline_s())
        kept = [row for row in rows if _is_indexed(row)]
        if self._projection.embedder is not None:
            kept = await self._embedded(kept, self._projection.embedder)
        if not kept:
            return {}
        entries = [self._projection.entry_of(row) for row in kept]
        try:
            await self._projection.index.upsert(entries, self._deadline_s())
        except EntriesRefused as refused:
            return dict(refused.reasons)
        return {}

    async def _embedded(self, rows: Sequence[OutboxRow], embedder: Embedder) -> list[OutboxRow]:
        """The rows with embeddings; missing ones are made now and stored."""
        missing = [row for row in rows if row.embedding is None]
        if not missing:
            return list(rows)
        texts = [parse_body(row.memory).content for row in missing if row.memory is not None]
        vectors = await embedder.embed_passages(texts, self._deadline_s())
        made = {row.memory_id: vector for row, vector in zip(missing, vectors, strict=True)}
        whole = [replace(row, embedding=made.get(row.memory_id, row.embedding)) for row in rows]
        for row in whole:
            if row.memory_id in made:
                await self._keep_embedding(row, embedder.model)
        return whole

    async def _keep_embedding(self, row: OutboxRow, model: str) -> None:
        memory, embedding = row.memory, row.embedding
        assert memory is not None
        assert embedding is not None
        await self._store.save_embedding(memory.memory_id, memory.version, model, embedding, self._deadline_s())
        if self._projection.rescoring is not None:
            await self._projection.rescoring.rescore(memory, embedding, model, self._deadline_s())


def _is_indexed(row: OutboxRow) -> bool:
    return row.memory is not None and row.memory.state is State.ACTIVE
