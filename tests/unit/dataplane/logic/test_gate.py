from dataplane.logic.gate import GateDecision, gate
from dataplane.logic.score import Score
from dataplane.model import Action, Draft, Kind, Layer
from memplane.policy.model import WritePolicy

POLICY = WritePolicy()


def decide(
    value: float | None,
    *,
    kind: Kind = Kind.FACT,
    hint: Layer | None = None,
    session_id: str = "",
    direct: bool = False,
) -> GateDecision:
    draft = Draft(namespace="a", content="x", kind=kind, layer_hint=hint, session_id=session_id)
    return gate(draft, Score(value, (), direct), POLICY)


def codes(decision: GateDecision) -> list[str]:
    return [reason.code for reason in decision.reasons]


def test_at_the_threshold_a_fact_is_kept_for_good() -> None:
    decision = decide(0.7)
    assert (decision.layer, decision.action, decision.threshold) == (Layer.LONG_TERM, Action.CREATED, 0.7)


def test_documents_and_knowledge_hints_go_to_knowledge() -> None:
    assert decide(0.9, kind=Kind.DOCUMENT).layer is Layer.KNOWLEDGE
    assert decide(0.9, hint=Layer.KNOWLEDGE).layer is Layer.KNOWLEDGE


def test_between_the_thresholds_it_is_kept_short_term() -> None:
    for value in (0.3, 0.69):
        decision = decide(value)
        assert (decision.layer, decision.action) == (Layer.SHORT_TERM, Action.KEPT_SHORT_TERM)
        assert codes(decision) == ["SCORE_BELOW_THRESHOLD"]


def test_below_both_it_stays_with_its_session() -> None:
    decision = decide(0.1, session_id="s1")
    assert (decision.layer, decision.action) == (Layer.WORKING, Action.KEPT_WORKING)


def test_below_both_without_a_session_it_is_refused_with_the_numbers() -> None:
    decision = decide(0.12)
    assert (decision.layer, decision.action, decision.threshold) == (None, Action.REJECTED, 0.3)
    assert codes(decision) == ["SCORE_BELOW_THRESHOLD"]
    assert "0.12" in decision.reasons[0].message
    assert "0.3" in decision.reasons[0].message


def test_a_direct_rule_admits_whatever_the_score() -> None:
    decision = decide(0.0, direct=True)
    assert (decision.layer, decision.action) == (Layer.LONG_TERM, Action.CREATED)
    assert codes(decision) == ["DIRECT_RULE"]


def test_without_an_opinion_it_is_kept_short_term() -> None:
    decision = decide(None)
    assert (decision.layer, decision.action) == (Layer.SHORT_TERM, Action.KEPT_SHORT_TERM)
    assert codes(decision) == ["NOBODY_HAD_AN_OPINION"]


def test_a_working_hint_with_a_session_needs_no_score() -> None:
    for value in (None, 0.0, 1.0):
        assert decide(value, hint=Layer.WORKING, session_id="s1").action is Action.KEPT_WORKING


def test_a_short_term_hint_caps_a_high_score() -> None:
    assert decide(1.0, hint=Layer.SHORT_TERM).layer is Layer.SHORT_TERM
    assert decide(0.0, hint=Layer.SHORT_TERM, direct=True).layer is Layer.SHORT_TERM
    assert decide(1.0, hint=Layer.WORKING).layer is Layer.SHORT_TERM


def test_no_hint_lifts_a_low_score() -> None:
    for hint in (Layer.SHORT_TERM, Layer.LONG_TERM, Layer.KNOWLEDGE):
        assert decide(0.1, hint=hint).action is Action.REJECTED
        assert decide(0.5, hint=hint).layer is Layer.SHORT_TERM
