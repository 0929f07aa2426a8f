"""Whose word the hits of a search are: many that answer alike from one writer at once are one voice.

After A-MemGuard (Wei et al. 2025: a memory is believed for what independent ones say) and against PoisonedRAG (Zou et
al. 2024: five texts written for one question crowd out the answer). Rules:

1. A hit *answers* when it holds `coverage` of the question's words; words weigh log(1 + hits / hits that hold it).
2. Two hits that answer are *alike* when they are of one voice (writer, speaker and session), written within `window_s`
   of each other, share `similarity` of the words of the one with fewer, weighed the same, and one has no figure that
   the other lacks: notes of one form with other values back nobody.
3. A hit with `statements` - 1 alike ones goes behind all others, unless it is the best of them.
4. One with `statements` or more alike ones goes there too if it is the best: it is part of a campaign. Where a hit of
   another voice answers as well, campaigns are left out.

People's own entries (HUMAN) are never judged. Only the best MOST_HITS that answer are compared, so that the cost is
bounded. Figures: docs/quality/guard.md.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import log

from memplane.policy.guard import ConsensusPolicy

MOST_HITS = 48
FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks in a memory."""

    principal_id: str
    source_type: int
    writer: str
    speaker: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A hit as it is judged: its content words, its voice, when it was written.

    `is_own`: a person's own entry, or just what was asked; it is never judged.
    """

    words: frozenset[str]
    voice: Voice
    time_us: int
    is_own: bool

    @property
    def figures(self) -> frozenset[str]:
        """Its words that are numbers."""
        return frozenset(word for word in self.words if word[0].isdigit())


class Standing(IntEnum):
    """What becomes of a hit."""

    KEPT = 0
    LAST = 1
    LEFT_OUT = 2


def standings(question: frozenset[str], heard: Sequence[Heard], policy: ConsensusPolicy) -> list[Standing]:
    """What becomes of each hit; they are given best first."""
    weights = _weights(question, heard)
    whole = sum(weights[word] for word in question)
    answering = [
        index
        for index, hit in enumerate(heard)
        if whole and sum(weights[word] for word in hit.words & question) >= policy.coverage * whole
    ]
    judged = [index for index in answering if len(heard[index].words) >= FEWEST_WORDS and not heard[index].is_own]
    alike = _alike(judged[:MOST_HITS], heard, weights, policy)
    found = [Standing.KEPT] * len(heard)
    for index, others in alike.items():
        if len(others) >= policy.statements or (len(others) == policy.statements - 1 and min(others) < index):
            found[index] = Standing.LAST
    _leave_out(found, alike, answering, heard, policy)
    return found


def _leave_out(
    found: list[Standing],
    alike: Mapping[int, Sequence[int]],
    answering: Sequence[int],
    heard: Sequence[Heard],
    policy: ConsensusPolicy,
) -> None:
    """Rule 4's second half."""
    for index, others in alike.items():
        if len(others) >= policy.statements and any(
            heard[other].voice != heard[index].voice and found[other] is Standing.KEPT for other in answering
        ):
            found[index] = Standing.LEFT_OUT


def _weights(question: frozenset[str], heard: Sequence[Heard]) -> Mapping[str, float]:
    counts = Counter(word for hit in heard for word in hit.words)
    return {word: log(1 + len(heard) / max(1, counts[word])) for word in {*counts, *question}}


def _alike(
    judged: Sequence[int], heard: Sequence[Heard], weights: Mapping[str, float], policy: ConsensusPolicy
) -> dict[int, list[int]]:
    """For each hit the others alike to it."""
    mass = {index: sum(weights[word] for word in heard[index].words) for index in judged}
    figures = {index: heard[index].figures for index in judged}
    window_us = int(policy.window_s * 1_000_000)
    found: dict[int, list[int]] = {index: [] for index in judged}
    for place, one in enumerate(judged):
        for other in judged[:place]:
            a, b = heard[one], heard[other]
            if a.voice != b.voice or abs(a.time_us - b.time_us) > window_us:
                continue
            if not (figures[one] <= figures[other] or figures[other] <= figures[one]):
                continue
            shared = sum(weights[word] for word in a.words & b.words)
            if shared >= policy.similarity * min(mass[one], mass[other]):
                found[one].append(other)
                found[other].append(one)
    return found
