"""Profiles that add weighted signals up.

    score = Σ weight × signal / Σ weight                                    each signal 0 to 1

- weighted (DESIGN §4): the policy's `weights`.
- balanced (issue 6): 0.6 relevance + 0.2 freshness + 0.1 frequency + 0.1 credibility, whatever `weights` says.
- orchestrated (issue 6): 0.3 recency + 0.4 relevance + 0.2 authority + 0.1 task alignment, by default. Recency is
  e^(−t/τ) with the profile's own τ for each kind, authority the policy's trust in the source type, and a memory is
  aligned whose category is the task type.

Freshness is e^(−age / time constant), the constant by category, else by kind, else the policy's; 0.5 for an unknown
age, 1 for a time to come.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

from dataplane.logic.profiles.formula import UNKNOWN_TIME, Times
from dataplane.logic.profiles.relevance import relevance, relevance_weights
from dataplane.logic.profiles.signals import Signals
from dataplane.model import DAY_US, Kind, Memory
from memplane.policy.retrieve import RetrievePolicy, Weights

BALANCED_RELEVANCE = 0.6
BALANCED_FRESHNESS = 0.2
BALANCED_FREQUENCY = 0.1
BALANCED_CREDIBILITY = 0.1


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum. `days_by_kind`: time constants, the kind's number their index."""

    weights: Weights
    days_by_kind: tuple[float, ...]
    days_by_category: Mapping[str, float]
    floor: float = 0.0

    def freshness(self, memory: Memory, times: Times) -> float:
        """How recent it is by its age, 0 to 1."""
        if times.age_us is None:
            return UNKNOWN_TIME
        if times.age_us <= 0:
            return 1.0
        days = self.days_by_category.get(memory.category)
        return exp(-times.age_us / (DAY_US * (self.days_by_kind[memory.kind] if days is None else days)))

    def boost(self, memory: Memory) -> float:
        """1."""
        return 1.0

    def score(self, signals: Signals, weights: Weights) -> float:
        """The sum, 0 to 1."""
        return (
            (weights.vector + weights.text) * relevance(signals, weights)
            + weights.freshness * signals.freshness
            + weights.frequency * signals.frequency
            + weights.credibility * signals.credibility
            + weights.task_alignment * signals.task_alignment
        )


def weighted(policy: RetrievePolicy) -> Linear:
    """The policy's own weights."""
    return _by_freshness(policy, policy.weights)


def balanced(policy: RetrievePolicy) -> Linear:
    """Meaning first, then what is new, used and trusted."""
    vector, text = relevance_weights(BALANCED_RELEVANCE, policy.weights)
    weights = Weights(
        vector=vector,
        text=text,
        freshness=BALANCED_FRESHNESS,
        frequency=BALANCED_FREQUENCY,
        credibility=BALANCED_CREDIBILITY,
    )
    return _by_freshness(policy, weights)


def orchestrated(policy: RetrievePolicy) -> Linear:
    """What is new, to the point, of authority and of the task at hand."""
    given = policy.orchestrated.weights
    vector, text = relevance_weights(given.relevance, policy.weights)
    weights = Weights(
        vector=vector,
        text=text,
        freshness=given.recency,
        frequency=0.0,
        credibility=given.authority,
        task_alignment=given.task_alignment,
    )
    days = policy.orchestrated.time_constant_days.model_dump()
    return Linear(_normalised(weights), _by_number(days, 0.0), policy.freshness.by_category)


def _by_freshness(policy: RetrievePolicy, weights: Weights) -> Linear:
    freshness = policy.freshness
    by_kind = {str(kind): days for kind, days in freshness.by_kind.items()}
    return Linear(_normalised(weights), _by_number(by_kind, freshness.time_constant_days), freshness.by_category)


def _by_number(days: Mapping[str, float], otherwise: float) -> tuple[float, ...]:
    return (otherwise, *(days.get(kind.name, otherwise) for kind in Kind))


def _normalised(weights: Weights) -> Weights:
    total = weights.total()
    return Weights.model_construct(**{name: weight / total for name, weight in weights.model_dump().items()})
