"""The profile of a companion: it remembers what is talked about, and lets rest what is not.

    score = similarity × e^(−λ × d) × source × min(1 + 0.1 × ln(1 + n), 1.5)                    (issue 6)

d: days since the memory was last used; one never used counts from when it was told (its event time, else its creation
time). n: its uses so far. source: the policy's trust in the source type. similarity: relevance to the query. λ (0.01,
advised 0.005 to 0.02), 0.1 and 1.5 are the policy's `companion`. Hits below its `keep_above` (0.6) are left out.

Freshness is e^(−λ × d): 0.5 when neither time is known, 1 for one to come.
"""

from dataclasses import dataclass
from math import exp, log1p

from dataplane.logic.profiles.formula import UNKNOWN_TIME, Times
from dataplane.logic.profiles.relevance import relevance, relevance_weights
from dataplane.logic.profiles.signals import Signals
from dataplane.model import DAY_US, Memory
from memplane.policy.retrieve import CompanionPolicy, RetrievePolicy, Weights


@dataclass(frozen=True, slots=True)
class Companion:
    """A product of similarity, time since last use, source and uses. All the weight is that of relevance."""

    weights: Weights
    policy: CompanionPolicy

    @property
    def floor(self) -> float:
        """The policy's `keep_above`."""
        return self.policy.keep_above

    def freshness(self, memory: Memory, times: Times) -> float:
        """How recently it was used, 0 to 1."""
        unused_us = times.age_us if times.idle_us is None else times.idle_us
        if unused_us is None:
            return UNKNOWN_TIME
        return exp(-self.policy.decay_per_day * max(0, unused_us) / DAY_US)

    def boost(self, memory: Memory) -> float:
        """1 for a memory never used, up to `max_boost`."""
        return min(1.0 + self.policy.use_gain * log1p(memory.access_count), self.policy.max_boost)

    def score(self, signals: Signals, weights: Weights) -> float:
        """The product, 0 to `max_boost`."""
        return relevance(signals, weights) * signals.freshness * signals.credibility * signals.boost


def companion(policy: RetrievePolicy) -> Companion:
    """The formula with the policy's `companion`."""
    vector, text = relevance_weights(1.0, policy.weights)
    weights = Weights(vector=vector, text=text, freshness=0.0, frequency=0.0, credibility=0.0)
    return Companion(weights, policy.companion)
