"""Judges when answers came.

An answer of MemPlane is late when it reaches its client SLACK_S after the call's deadline, or never. The client's gRPC
library ends calls at their deadline, by its own clock and as late as its process lets it, so that alone would see
little. A call is therefore late, too, when it ended so, and MemPlane owed an answer of its own before: with PROMISED_S
to spare a call is answered, degraded or UNAVAILABLE, whatever store is down, silent or slow. Nobody can answer for a
data plane that is itself killed, stopped, paused or cut off at that time, or was until RETURNED_S before.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.chaos.history import Entry

SLACK_S = 0.25
"""How long after its deadline an answer may reach the client: two processes on a busy machine."""
PROMISED_S = 5.0
"""What a call waits for stores in the policies of a run, one after another, until it gives up, rounded up. Searches:
1 s for the indexes, 2 s for the record store and 1 s for rows in the indexes; writes: 1 s for the cache and 2 s for
the record store or the queue."""
RETURNED_S = 2.0
"""Unmeasured."""

Span = tuple[float, float]


@dataclass
class Spans:
    """When the harness itself stood still, and when each data plane could not answer."""

    lags: list[Span] = field(default_factory=list)
    away: dict[str, list[Span]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Spans":
        """Read from the entries `lag` and `fault`."""
        spans = cls()
        for entry in entries:
            end_s = entry.start_s if entry.end_s is None else entry.end_s
            if entry.method == "lag":
                spans.lags.append((entry.start_s, end_s))
            elif entry.method == "fault":
                unit = str(entry.asked["target"]).partition(":")[0]
                spans.away.setdefault(unit, []).append((entry.start_s, end_s + RETURNED_S))
        return spans

    def held_s(self, start_s: float, end_s: float) -> float:
        """How much of a span the harness stood still."""
        return sum(_common_s(span, (start_s, end_s)) for span in self.lags)

    def was_away(self, plane: str, start_s: float, end_s: float) -> bool:
        """Whether a data plane could not answer at some time in a span."""
        return any(_common_s(span, (start_s, end_s)) > 0 for span in self.away.get(plane, ()))


def violations(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Whatever came too late, as (kind, what); every attempt once, whatever its batch holds."""
    spans, seen = Spans.of(entries), set[tuple[int, int, int, int]]()
    for entry in entries:
        attempt = (entry.client, entry.intent, 0 if entry.method == "write" else entry.item, entry.attempt)
        if entry.method in {"lag", "fault"} or attempt in seen:
            continue
        seen.add(attempt)
        told = _late(entry, spans)
        if told:
            yield "late", f"{entry.name}: {told}"


def _late(entry: Entry, spans: Spans) -> str:
    """In words; "" when it is not."""
    if entry.end_s is None:
        return "never answered"
    held_s = spans.held_s(entry.start_s, entry.end_s)
    over_s = entry.end_s - entry.start_s - entry.deadline_s - held_s
    if over_s > SLACK_S and not _is_of_client(entry):
        return f"{over_s:.2f} s after its deadline of {entry.deadline_s:g} s ({entry.code})"
    was_owed = _ended_by_client(entry) and entry.deadline_s >= PROMISED_S and held_s <= SLACK_S
    plane = f"data-{entry.told.get('plane', 0) + 1}"
    if was_owed and not spans.was_away(plane, entry.start_s, entry.end_s):
        return f"{plane} said nothing for {entry.deadline_s:g} s"
    return ""


def _ended_by_client(entry: Entry) -> bool:
    lasted_s = (entry.end_s or entry.start_s) - entry.start_s
    return lasted_s > entry.deadline_s - SLACK_S and _is_of_client(entry)


def _is_of_client(entry: Entry) -> bool:
    """Whether the client's library ended the call: what the service answers has a reason."""
    return entry.code == "DEADLINE_EXCEEDED" and not entry.told.get("reason")


def _common_s(one: Span, other: Span) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
