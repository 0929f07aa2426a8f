"""How much a memory says about the query: the one measure of it in every profile.

    own = (w_vector × vector + w_text × text) / (w_vector + w_text)
    lifted = 1 − (1 − own) × (1 − beside)
    relevance = odds × lifted / (1 − lifted + odds × lifted)                                    each 0 to 1

The weights are `weights.vector` and `weights.text` of the policy, whatever its profile; by default text has none.
`beside` is what the turns beside the memory say for it (`logic.neighbours`). `odds` multiplies the odds that it is
relevant, lifted : 1 − lifted, by the policy's `odds` for what is known of it beyond its words: said by one whom the
question names, itself a question (measured in docs/quality/retrieval.md).
"""

from dataplane.logic.neighbours import lifted
from dataplane.logic.profiles.signals import Signals
from memplane.policy.retrieve import Weights


def relevance(signals: Signals, weights: Weights) -> float:
    """0 to 1; where neither has a weight, their greater one counts as own."""
    chance = lifted(own_relevance(signals.vector, signals.text, weights), signals.beside)
    raised = signals.odds * chance
    return raised / (1.0 - chance + raised)


def own_relevance(vector: float, text: float, weights: Weights) -> float:
    """What the memory itself says about the query, 0 to 1."""
    weight = weights.vector + weights.text
    return (weights.vector * vector + weights.text * text) / weight if weight > 0 else max(vector, text)


def relevance_weights(weight: float, given: Weights) -> tuple[float, float]:
    """`weight` divided between vector and text as `given` divides it; all is the vector's where it gives them none."""
    total = given.vector + given.text
    return (weight * given.vector / total, weight * given.text / total) if total > 0 else (weight, 0.0)


def by_text(weights: Weights) -> Weights:
    """The same weights, the vector's moved to text."""
    return weights.model_copy(update={"vector": 0.0, "text": weights.vector + weights.text})


def by_meaning(weights: Weights, text: float) -> Weights:
    """The same weights, so much (0 to 1) of the text's left to it and the rest moved to the vector's."""
    moved = weights.text * (1.0 - text)
    return weights.model_copy(update={"vector": weights.vector + moved, "text": weights.text - moved})
