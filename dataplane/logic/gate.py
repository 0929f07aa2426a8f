"""Admission of a write: which layer a draft enters, or none, and why.

Rules, first match wins (T = `threshold`, S = `short_term_threshold`, both inclusive):

1. Hint WORKING and a session: WORKING, whatever the score.
2. A direct rule matched, or score ≥ T: LONG_TERM; KNOWLEDGE for a DOCUMENT or with the hint KNOWLEDGE.
3. Nobody had an opinion: SHORT_TERM, to be scored again when the model is back.
4. Score ≥ S: SHORT_TERM.
5. Score < S and a session: WORKING. Without a session: refused.

A hint of SHORT_TERM (or of WORKING without a session) caps rule 2 at SHORT_TERM. No hint lifts a low score. What is
about a day that is soon over (`logic.passing`) is capped at SHORT_TERM too (`kept_short`).
"""

from dataclasses import dataclass

from dataplane.logic.score import Score
from dataplane.model import Action, Draft, Kind, Layer
from memplane.policy.model import WritePolicy


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a decision came out as it did: an upper-case code, and the same for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The layer (None: refused), what the write came to, the threshold that decided (0 to 1), and why.

    `unscored`: nobody had an opinion; the memory is to be scored again when the model is back.
    """

    layer: Layer | None
    action: Action
    threshold: float
    reasons: tuple[Reason, ...]
    unscored: bool = False


def gate(draft: Draft, score: Score, policy: WritePolicy) -> GateDecision:
    """The decision on a draft by the rules above."""
    if draft.layer_hint is Layer.WORKING and draft.session_id:
        why = Reason("LAYER_HINT", "the writer asked to keep it with the session only")
        return GateDecision(Layer.WORKING, Action.KEPT_WORKING, policy.threshold, (why,))
    if score.direct:
        return _admitted(draft, policy, Reason("DIRECT_RULE", "a rule of the policy admits it whatever its score"))
    if score.value is None:
        why = Reason(
            "NOBODY_HAD_AN_OPINION", "no rule matched and the model could not be asked; it is scored again later"
        )
        return GateDecision(Layer.SHORT_TERM, Action.KEPT_SHORT_TERM, policy.threshold, (why,), _may_rise(draft))
    if score.value >= policy.threshold:
        said = f"score {score.value:.2f} is at or above threshold {policy.threshold:g}"
        return _admitted(draft, policy, Reason("SCORE_AT_OR_ABOVE_THRESHOLD", said))
    return _below(draft, score.value, policy)


def kept_short(decision: GateDecision, policy: WritePolicy) -> GateDecision:
    """A decision on a text that is about a day that is soon over: not above SHORT_TERM."""
    capped = Reason("PASSING", "it is about a day that is soon over: kept for the short term")
    return GateDecision(Layer.SHORT_TERM, Action.KEPT_SHORT_TERM, policy.threshold, (*decision.reasons, capped))


def _admitted(draft: Draft, policy: WritePolicy, why: Reason) -> GateDecision:
    if draft.layer_hint in {Layer.WORKING, Layer.SHORT_TERM}:
        capped = Reason("LAYER_HINT", "the writer asked for no more than SHORT_TERM")
        return GateDecision(Layer.SHORT_TERM, Action.KEPT_SHORT_TERM, policy.threshold, (why, capped))
    knowledge = draft.kind is Kind.DOCUMENT or draft.layer_hint is Layer.KNOWLEDGE
    layer = Layer.KNOWLEDGE if knowledge else Layer.LONG_TERM
    return GateDecision(layer, Action.CREATED, policy.threshold, (why,))


def _may_rise(draft: Draft) -> bool:
    return draft.layer_hint not in {Layer.WORKING, Layer.SHORT_TERM}


def _below(draft: Draft, value: float, policy: WritePolicy) -> GateDecision:
    if value >= policy.short_term_threshold:
        why = Reason("SCORE_BELOW_THRESHOLD", f"score {value:.2f} is below threshold {policy.threshold:g}")
        return GateDecision(Layer.SHORT_TERM, Action.KEPT_SHORT_TERM, policy.threshold, (why,))
    said = f"score {value:.2f} is below short_term_threshold {policy.short_term_threshold:g}"
    if draft.session_id:
        why = Reason("SCORE_BELOW_THRESHOLD", f"{said}; it is kept with its session")
        return GateDecision(Layer.WORKING, Action.KEPT_WORKING, policy.short_term_threshold, (why,))
    why = Reason("SCORE_BELOW_THRESHOLD", f"{said}, and there is no session to keep it")
    return GateDecision(None, Action.REJECTED, policy.short_term_threshold, (why,))
