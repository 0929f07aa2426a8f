"""What both in-memory indexes do with entries."""

from collections.abc import Iterable, Mapping

from dataplane.logic.fingerprint import fingerprint
from dataplane.model import Held, IndexEntry


def held_of(entry: IndexEntry) -> Held:
    """What the index holds of an entry's memory."""
    return Held(entry.version, entry.namespace, fingerprint(entry))


def newest(entries: Iterable[IndexEntry], known: Mapping[str, IndexEntry]) -> dict[str, IndexEntry]:
    """The last entry of each id, but never an older version than the one known."""
    last = {entry.memory_id: entry for entry in entries}
    return {
        memory_id: entry
        for memory_id, entry in last.items()
        if memory_id not in known or entry.version >= known[memory_id].version
    }
