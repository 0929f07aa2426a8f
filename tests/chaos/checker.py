"""Judges a history: what was promised and did not come true, by kind.

Only what the contract promises is demanded. An operation of unknown outcome may or may not have happened, so it excuses
what it could explain and is owed nothing. `degraded` excuses a search that lacks something, never one that returns what
was forgotten or another tenant's.

- lost: an acknowledged write, change or queued write that is gone at the end although nothing can have removed it; a
  search with a write's own token that misses it without `degraded`.
- doubled: two ACTIVE memories of one statement or fact, one request with two outcomes.
- resurrected: forgotten, and in the answer to a call that started after that was acknowledged, or there at the end.
- leaked: a marker or memory of one tenant in an answer to another.
- unmarked: an answer without what it must have (also an old text after an acknowledged change) that says nothing of it.
- late: answered after its deadline, or never, or only by the client's own clock where MemPlane owed an answer
  (`lateness.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tests.chaos import endings, lateness, reads
from tests.chaos.history import Entry, FinalState
from tests.chaos.model import Model, Write

KINDS = ("lost", "doubled", "resurrected", "leaked", "unmarked", "late")


@dataclass(frozen=True, slots=True)
class Report:
    """What was acknowledged, every violation (its kind and what happened), and how often each method ended how."""

    acknowledged: int
    found: Sequence[tuple[str, str]]
    codes: Counter[str]

    @property
    def counts(self) -> Counter[str]:
        """Violations by kind."""
        return Counter(kind for kind, _ in self.found)

    @property
    def is_clean(self) -> bool:
        """Whether there is none."""
        return not self.found

    @property
    def violations(self) -> list[str]:
        """One line each."""
        return [f"{kind}: {text}" for kind, text in self.found]

    def line(self, faults: int) -> str:
        """The result of a run with so many faults."""
        counted = " ".join(f"{kind}={self.counts[kind]}" for kind in KINDS)
        return f"acknowledged={self.acknowledged} faults={faults} {counted}"


def check(history: Iterable[Entry], final_state: FinalState, *, clocks_skewed: bool = False) -> Report:
    """The report on a history.

    With `clocks_skewed` a write that came later may have lost to an older one of the same fact.
    """
    model = Model(history, final_state, clocks_skewed=clocks_skewed)
    found = chain(
        reads.violations(model),
        endings.violations(model, final_state),
        _told(model),
        lateness.violations(model.entries),
    )
    calls = [entry for entry in model.entries if entry.method not in {"lag", "fault"}]
    codes = Counter(f"{entry.method} {entry.code or 'no answer'}" for entry in calls)
    return Report(_acknowledged(model), list(dict.fromkeys(found)), codes)


def _acknowledged(model: Model) -> int:
    return sum(item.is_acknowledged for item in chain(model.writes, model.changes, model.removals))


def _told(model: Model) -> Iterator[tuple[str, str]]:
    """What the answers to writes alone give away."""
    for write in model.writes:
        if len(write.told_ids) > 1 or len(write.operations) > 1:
            yield "doubled", f"{write.marker}: one request, outcomes {sorted(write.told_ids | write.operations)}"
        if _met_forgotten(model, write):
            yield "resurrected", f"{write.marker}: merged into {write.memory_id}, which was forgotten before"
    for entry in model.entries:
        quiet = entry.asked.get("delivery") == "SYNC" and not entry.told.get("degraded") and not entry.attempt
        if entry.method == "write" and entry.told.get("action") == "QUEUED" and quiet:
            yield "unmarked", f"{entry.name}: SYNC was answered QUEUED, and nothing is said to be degraded"


def _met_forgotten(model: Model, write: Write) -> bool:
    removals = model.removals_of.get(write.memory_id, ())
    return bool(write.memory_id) and any(removal.was_done_by(write.start_s) for removal in removals)
