"""How much a memory says about the query: the one measure of it in every profile.

    relevance = (w_vector × vector + w_text × text) / (w_vector + w_text)

The weights are `weights.vector` and `weights.text` of the policy, whatever its profile; by default text has none.
"""

from dataplane.logic.profiles.signals import Signals
from memplane.policy.retrieve import Weights


def relevance(signals: Signals, weights: Weights) -> float:
    """0 to 1; where neither has a weight, the greater of the two."""
    weight = weights.vector + weights.text
    if weight <= 0:
        return max(signals.vector, signals.text)
    return (weights.vector * signals.vector + weights.text * signals.text) / weight


def relevance_weights(weight: float, given: Weights) -> tuple[float, float]:
    """`weight` divided between vector and text as `given` divides it; all is the vector's where it gives them none."""
    total = given.vector + given.text
    return (weight * given.vector / total, weight * given.text / total) if total > 0 else (weight, 0.0)


def by_text(weights: Weights) -> Weights:
    """The same weights, the vector's moved to text."""
    return weights.model_copy(update={"vector": 0.0, "text": weights.vector + weights.text})
