"""The outbox of the in-memory record store: leases, what failed, and how far each index has followed."""

from collections.abc import Sequence
from dataclasses import replace

from dataplane.adapters.inmemory.record_tables import Doubt, Tables, Waiting
from dataplane.changes import DeadLetter, Failure, IndexProgress, Lease, OutboxRow
from dataplane.model import State


def waiting(tables: Tables, index: str) -> list[Waiting]:
    """The rows of an index that were not given up, by position."""
    return [row for row in rows_of(tables, index) if row.dead_time_us is None]


def rows_of(tables: Tables, index: str) -> list[Waiting]:
    """All rows of an index, by position."""
    found = [row for (name, _), row in tables.outbox.items() if name == index]
    return sorted(found, key=lambda row: row.position)


def register(tables: Tables, index: str) -> bool:
    """See Outbox.register_index."""
    is_new = index not in tables.indexes
    tables.indexes[index] = tables.time_us
    return is_new


def retire(tables: Tables, index: str) -> None:
    """Forgets an index with its rows."""
    tables.indexes.pop(index, None)
    tables.outbox = {key: row for key, row in tables.outbox.items() if key[0] != index}
    tables.doubts = {key: doubt for key, doubt in tables.doubts.items() if key[0] != index}


def retire_unseen(tables: Tables, seconds: float) -> list[str]:
    """See Outbox.retire_unseen."""
    since_us = tables.time_us - _us(seconds)
    unseen = sorted(index for index, seen_us in tables.indexes.items() if seen_us <= since_us)
    for index in unseen:
        retire(tables, index)
    return unseen


def enqueue_all(tables: Tables, index: str, after_id: str, page_size: int) -> list[str]:
    """See Outbox.enqueue_all."""
    awaiting = {row.memory_id for row in waiting(tables, index)}
    ids = sorted(m.memory_id for m in tables.memories.values() if m.state is State.ACTIVE and m.memory_id > after_id)
    for memory_id in ids[:page_size]:
        if index in tables.indexes and memory_id not in awaiting:
            tables.last_position += 1
            namespace = tables.memories[memory_id].namespace
            row = Waiting(tables.last_position, memory_id, namespace, tables.time_us)
            tables.outbox[index, row.position] = row
    return ids[:page_size]


def lease(tables: Tables, index: str, lease: Lease, page_size: int) -> list[OutboxRow]:
    """Takes the oldest rows due, of each memory its oldest one; without what the store says of the memories."""
    oldest: dict[str, Waiting] = {}
    newest: dict[str, int] = {}
    for row in waiting(tables, index):
        oldest.setdefault(row.memory_id, row)
        newest[row.memory_id] = row.position
    due = [row for row in oldest.values() if row.due_time_us <= tables.time_us][:page_size]
    until_us = tables.time_us + _us(lease.seconds)
    leased = [
        replace(row, owner=lease.owner, due_time_us=until_us, abandoned=row.abandoned or row.owner != "") for row in due
    ]
    tables.outbox.update(((index, row.position), row) for row in leased)
    return [
        OutboxRow(
            row.position,
            row.memory_id,
            row.namespace,
            None,
            None,
            covers=newest[row.memory_id],
            attempts=row.attempts,
            abandoned=row.abandoned,
        )
        for row in leased
    ]


def filled(tables: Tables, row: OutboxRow, model: str) -> OutboxRow:
    """The row with its memory and that one's embedding, while it is ACTIVE."""
    memory = tables.memories.get(row.memory_id)
    if memory is None or memory.state is not State.ACTIVE:
        return row
    embedding = tables.embeddings.get((memory.memory_id, memory.version, model))
    return replace(row, memory=memory, embedding=embedding)


def renew(tables: Tables, lease: Lease) -> None:
    """See Outbox.renew_outbox."""
    until_us = tables.time_us + _us(lease.seconds)
    for key, row in tables.outbox.items():
        if row.owner == lease.owner != "":
            tables.outbox[key] = replace(row, due_time_us=until_us)


def settle(tables: Tables, index: str, owner: str, rows: Sequence[OutboxRow]) -> None:
    """See Outbox.settle_outbox."""
    held = [row for row in rows if _holds(tables, index, owner, row)]
    applied = {row.memory_id: max(row.position, row.covers) for row in held}
    for each in rows_of(tables, index):
        if each.position <= applied.get(each.memory_id, 0):
            del tables.outbox[index, each.position]


def postpone(tables: Tables, index: str, owner: str, failures: Sequence[Failure]) -> None:
    """See Outbox.postpone_outbox."""
    for failure in failures:
        if not _holds(tables, index, owner, failure.row):
            continue
        row = tables.outbox[index, failure.row.position]
        row = replace(row, owner="", attempts=row.attempts + 1, reason=failure.reason)
        if failure.wait_s is None:
            row = replace(row, dead_time_us=tables.time_us)
        else:
            row = replace(row, due_time_us=tables.time_us + _us(failure.wait_s))
        tables.outbox[index, row.position] = row


def _holds(tables: Tables, index: str, owner: str, row: OutboxRow) -> bool:
    held = tables.outbox.get((index, row.position))
    return held is not None and held.owner == owner != ""


def release(tables: Tables, owner: str) -> None:
    """See Outbox.release_outbox."""
    for key, row in tables.outbox.items():
        if row.owner and (row.owner == owner or row.owner.startswith(f"{owner}/")):
            tables.outbox[key] = replace(row, owner="", due_time_us=0, abandoned=True)


def doubt(tables: Tables, index: str, rows: Sequence[OutboxRow], seconds: float) -> None:
    """See Outbox.doubt_outbox."""
    due_time_us = tables.time_us + _us(seconds)
    if index in tables.indexes:
        tables.doubts.update(((index, row.memory_id), Doubt(row.namespace, due_time_us)) for row in rows)


def enqueue_doubted(tables: Tables, index: str, page_size: int) -> int:
    """See Outbox.enqueue_doubted."""
    due = [
        (each.due_time_us, key)
        for key, each in tables.doubts.items()
        if key[0] == index and each.due_time_us <= tables.time_us
    ]
    for _, key in sorted(due)[:page_size]:
        namespace = tables.doubts.pop(key).namespace
        tables.last_position += 1
        tables.outbox[index, tables.last_position] = Waiting(tables.last_position, key[1], namespace, tables.time_us)
    return len(due[:page_size])


def undelivered(tables: Tables, memory_id: str) -> set[str]:
    """See Outbox.undelivered."""
    awaiting = {index for (index, _), row in tables.outbox.items() if row.memory_id == memory_id}
    return awaiting | {index for index, doubted in tables.doubts if doubted == memory_id}


def unapplied_removals(tables: Tables, after_id: str) -> list[str]:
    """See Outbox.unapplied_removals; all of them."""
    active = {memory_id for memory_id, memory in tables.memories.items() if memory.state is State.ACTIVE}
    awaiting = {row.memory_id for row in tables.outbox.values()} | {memory_id for _, memory_id in tables.doubts}
    return sorted({memory_id for memory_id in awaiting if memory_id > after_id} - active)


def progress(tables: Tables, index: str) -> IndexProgress:
    """How far one index has followed."""
    due = waiting(tables, index)
    first = next((row.position - 1 for row in due if not row.attempts), tables.last_position)
    dead = sum(row.dead_time_us is not None for row in rows_of(tables, index))
    doubted = sum(name == index for name, _ in tables.doubts)
    return IndexProgress(index, first, len(due) + doubted, dead, due[0].time_us if due else None)


def dead_letters(tables: Tables, index: str, after_position: int) -> list[DeadLetter]:
    """Rows that were given up, by position."""
    return [
        DeadLetter(name, row.position, row.memory_id, row.namespace, row.attempts, row.reason, row.dead_time_us)
        for (name, position), row in sorted(tables.outbox.items(), key=lambda item: (item[0][1], item[0][0]))
        if row.dead_time_us is not None and index in ("", name) and position > after_position
    ]


def replay(tables: Tables, index: str, positions: Sequence[int]) -> int:
    """See Outbox.replay_dead_letters."""
    chosen = [
        row
        for row in rows_of(tables, index)
        if row.dead_time_us is not None and (not positions or row.position in positions)
    ]
    for row in chosen:
        fresh = Waiting(row.position, row.memory_id, row.namespace, row.time_us, abandoned=True)
        tables.outbox[index, row.position] = fresh
    return len(chosen)


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
