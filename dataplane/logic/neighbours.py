"""What the turns beside a memory in its session say for it: a reply means little without the turn that it answers.

    support = min(1, Σ FADE^(d − 1) × (before × r(−d) + after × r(+d)))         d = 1 … reach places, 0 to 1

r(∓d) is the relevance of the memory d places before or after; `before`, `after` and `reach` are the policy's. Places
are those of (sequence, creation time, id) among the memories given; a session is of one namespace.

Measured on LoCoMo, 976 questions, 2026-11: recall@10 .711 → .844, recall@5 .639 → .747 with the other signals on (see
docs/quality/retrieval.md). FADE 0.5 or 0.7 and a reach of 2, 3 or 5 differ by less than .01 at 10; a reach of 1 loses
.01. That a question says more for what follows than another turn (1.3 : 0.7) loses .007.
"""

from collections.abc import Sequence

from dataplane.model import Memory
from memplane.policy.retrieve import Neighbours

FADE = 0.5


def supports(memories: Sequence[Memory], relevances: Sequence[float], policy: Neighbours) -> list[float]:
    """The support of each memory, index-aligned."""
    found = [0.0] * len(memories)
    if policy.use == "off":
        return found
    for places in _sessions(memories):
        for at, one in enumerate(places):
            for distance, other in enumerate(places[at + 1 : at + 1 + policy.reach]):
                share = FADE**distance
                found[other] += share * policy.before * relevances[one]
                found[one] += share * policy.after * relevances[other]
    return [min(1.0, support) for support in found]


def lifted(relevance: float, support: float) -> float:
    """1 − (1 − relevance) × (1 − support): never lower, 0 to 1."""
    return 1.0 - (1.0 - relevance) * (1.0 - support)


def _sessions(memories: Sequence[Memory]) -> list[list[int]]:
    """The places in `memories` of each session's, in order."""
    by_session: dict[tuple[str, str], list[int]] = {}
    for place, memory in enumerate(memories):
        if memory.session_id:
            by_session.setdefault((memory.namespace, memory.session_id), []).append(place)
    for places in by_session.values():
        places.sort(key=lambda place: _order(memories[place]))
    return list(by_session.values())


def _order(memory: Memory) -> tuple[int, int, str]:
    return memory.sequence, memory.create_time_us, memory.memory_id
