"""What both in-memory indexes do with entries."""

from collections.abc import Iterable, Mapping, Sequence

from dataplane.logic.fingerprint import fingerprint
from dataplane.model import Held, IndexEntry, Scope


def held_of(entry: IndexEntry) -> Held:
    """What the index holds of an entry's memory."""
    return Held(entry.version, entry.namespace, fingerprint(entry))


def rows_of(entries: Mapping[str, IndexEntry], scope: Scope, memory_ids: Sequence[str]) -> dict[str, bytes]:
    """The packed rows of these memories in the scope, where there are any."""
    found = (entries[memory_id] for memory_id in memory_ids if memory_id in entries)
    return {each.memory_id: each.row for each in found if each.row and scope.covers(each.namespace, each.pool)}


def newest(entries: Iterable[IndexEntry], known: Mapping[str, IndexEntry]) -> dict[str, IndexEntry]:
    """The last entry of each id, but never an older version than the one known."""
    last = {entry.memory_id: entry for entry in entries}
    return {
        memory_id: entry
        for memory_id, entry in last.items()
        if memory_id not in known or entry.version >= known[memory_id].version
    }
