"""How an index entry stands to the record store."""

from enum import StrEnum

from dataplane.changes import IndexProgress
from dataplane.model import Held


class Fault(StrEnum):
    """What is wrong with a memory in an index."""

    MISSING = "missing"
    STALE = "stale"
    DIFFERENT = "different"
    ORPHAN = "orphan"


def fault_of(expected: Held | None, held: Held | None) -> Fault | None:
    """What is wrong; None: nothing.

    `expected` is what the record store asks for, None: that there is nothing. Fingerprints are compared where both
    sides have one.
    """
    if expected is None:
        return None if held is None else Fault.ORPHAN
    if held is None:
        return Fault.MISSING
    if held.version != expected.version:
        return Fault.STALE
    both_tell = bool(held.fingerprint and expected.fingerprint)
    changed = held.namespace != expected.namespace or (both_tell and held.fingerprint != expected.fingerprint)
    return Fault.DIFFERENT if changed else None


def counts_agree(record_count: int, index_count: int, progress: IndexProgress, passed: int) -> bool:
    """Whether the counts differ by no more than what waits, was given up, or came while counting (`passed` positions).

    Each change moves a count by one at most.
    """
    return abs(record_count - index_count) <= progress.due_count + progress.dead_count + passed
