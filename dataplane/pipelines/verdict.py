"""A write's decision as it grows along the pipeline."""

from dataclasses import dataclass, replace

from dataplane.logic.gate import GateDecision
from dataplane.logic.score import Score
from dataplane.model import Action, Redaction, State
from memplane.v1 import memory_pb2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a write came to, and why; `state` is what a new memory would be stored as."""

    action: Action
    state: State
    gate: GateDecision
    scored: Score
    reasons: tuple[tuple[str, str], ...] = ()
    conflicts: tuple[tuple[str, str, str, str], ...] = ()
    redactions: tuple[Redaction, ...] = ()

    @property
    def score(self) -> float:
        """The gate's score, 0 when nobody had an opinion."""
        return self.scored.value if self.scored.value is not None else 0.0

    def become(self, action: Action, code: str, message: str) -> "Verdict":
        """The same with another outcome and one more reason."""
        return replace(self, action=action, reasons=(*self.reasons, (code, message)))

    def hold(self, code: str, message: str) -> "Verdict":
        """The same, held until a person has seen it."""
        return replace(self, state=State.PENDING_REVIEW).become(Action.PENDING_REVIEW, code, message)

    def with_conflict(self, memory_id: str, fact_key: str, winner_id: str, rule: str) -> "Verdict":
        """The same with a conflict and a reason that names it."""
        outcome = "it is superseded" if winner_id != memory_id else "it stands, the new statement is superseded"
        message = f"memory {memory_id} says otherwise under the same fact key; {outcome} ({rule})"
        return replace(
            self,
            reasons=(*self.reasons, ("CONFLICT", message)),
            conflicts=(*self.conflicts, (memory_id, fact_key, winner_id, rule)),
        )

    def message(self) -> memory_pb2.Decision:
        """The decision as clients see it."""
        decision = memory_pb2.Decision(
            action=memory_pb2.DecisionAction.ValueType(self.action), score=self.score, threshold=self.gate.threshold
        )
        for part in self.scored.parts:
            decision.score_parts.add(
                channel=part.channel,
                score=part.score,
                weight=part.weight,
                abstained=part.abstained,
                detail=part.detail,
            )
        for reason in self.gate.reasons:
            decision.reasons.add(code=reason.code, message=reason.message)
        for code, text in self.reasons:
            decision.reasons.add(code=code, message=text)
        for found in self.redactions:
            decision.redactions.add(type=found.type, field=found.field, count=found.count)
        for memory_id, fact_key, winner_id, rule in self.conflicts:
            decision.conflicts.add(memory_id=memory_id, fact_key=fact_key, winner_id=winner_id, rule=rule)
        return decision
