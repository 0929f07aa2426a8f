"""Who waits for each port method, which decides how long it may take and which breaker it trips.

Every async method of every port stands here; one that is missing fails a test and, called, its caller.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from dataplane.ports import Cache, Embedder, RecordReads, RecordStore, TextIndex, VectorIndex, WriteQueue


class CallClass(Enum):
    """What a call is to those who wait for it."""

    READ = "read"
    """A search or a look-up waits: `timeout_s`, the breaker of reads."""
    WRITE = "write"
    """Something is changed while a caller or a projector waits: `write_timeout_s`, the breaker of writes."""
    BACKGROUND = "background"
    """Nobody waits, or one who brought a time limit for this alone: that limit, and no breaker."""


_READ, _WRITE, _BACKGROUND = CallClass.READ, CallClass.WRITE, CallClass.BACKGROUND

_BACKEND = {"examine": _BACKGROUND, "close": _BACKGROUND}

_RECORD_READS = {
    "last_position": _READ,
    "get": _READ,
    "get_version": _READ,
    "list_versions": _READ,
    "list_memories": _READ,
    "most_used": _READ,
    "fetch": _READ,
    "neighbours": _READ,
    "pending": _READ,
    "history": _READ,
}

_OUTBOX = {
    "register_index": _BACKGROUND,
    "retire_index": _BACKGROUND,
    "retire_unseen": _BACKGROUND,
    "enqueue_all": _BACKGROUND,
    "lease_outbox": _BACKGROUND,
    "renew_outbox": _BACKGROUND,
    "settle_outbox": _BACKGROUND,
    "postpone_outbox": _BACKGROUND,
    "release_outbox": _BACKGROUND,
    "doubt_outbox": _BACKGROUND,
    "enqueue_doubted": _BACKGROUND,
    "undelivered": _READ,  # a writer waits for its projection
    "unapplied_removals": _BACKGROUND,
    "progress": _BACKGROUND,
    "dead_letters": _BACKGROUND,
    "replay_dead_letters": _BACKGROUND,
}

_RECORDS = {
    **_BACKEND,
    **_RECORD_READS,
    **_OUTBOX,
    "reads": _READ,
    "commit": _WRITE,
    "find_same_content": _READ,
    "find_contents": _READ,
    "find_fact": _READ,
    "erase": _WRITE,
    "find_requests": _READ,
    "scan": _BACKGROUND,
    "marker": _BACKGROUND,
    "save_marker": _BACKGROUND,
    "raise_marker": _BACKGROUND,
    "stamp_marker": _BACKGROUND,
    "stale_markers": _BACKGROUND,
    "drop_markers": _BACKGROUND,
    "save_embedding": _BACKGROUND,
    "tombstones": _READ,
    "record_accesses": _BACKGROUND,
    "record_retrievals": _BACKGROUND,
    "save_operations": _WRITE,
    "find_operation": _READ,
    "list_operations": _READ,
    "count": _BACKGROUND,
}

_INDEX = {
    **_BACKEND,
    "search": _READ,
    "rows": _READ,
    "upsert": _WRITE,
    "delete": _WRITE,
    "versions": _BACKGROUND,
    "held": _BACKGROUND,
    "count": _BACKGROUND,
    "beacons": _BACKGROUND,
    "save_beacon": _BACKGROUND,
    "flush": _BACKGROUND,
    "purge": _BACKGROUND,
    "clear": _BACKGROUND,
}

_CACHE = {
    **_BACKEND,
    "get": _READ,
    "put": _WRITE,
    "stamp": _READ,
    "drop": _WRITE,
    "bury": _WRITE,
    "unbury": _WRITE,
    "buried": _READ,
    "continuity": _READ,
    "vouch": _BACKGROUND,
    "is_vouched": _READ,
}

_QUEUE = {
    **_BACKEND,
    "put": _WRITE,
    "take": _BACKGROUND,
    "renew": _BACKGROUND,
    "done": _BACKGROUND,
    "set_aside": _BACKGROUND,
    "set_aside_writes": _BACKGROUND,
    "replay_set_aside": _BACKGROUND,
    "find": _READ,
    "depth": _BACKGROUND,
}

CALL_CLASSES: Final[Mapping[type, Mapping[str, CallClass]]] = MappingProxyType(
    {
        RecordReads: _RECORD_READS,
        RecordStore: _RECORDS,
        VectorIndex: {**_INDEX, "active_model": _BACKGROUND, "activate": _BACKGROUND},
        TextIndex: _INDEX,
        Cache: _CACHE,
        WriteQueue: _QUEUE,
        Embedder: {**_BACKEND, "embed_queries": _READ, "embed_passages": _WRITE},
    }
)
"""The classes of a port's methods, by port."""
