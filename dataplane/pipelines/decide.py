"""What a draft comes to by the policy alone: score, gate, shared pool, sensitive data, guard, in this order."""

from dataclasses import replace

from dataplane.logic.gate import gate
from dataplane.logic.score import score
from dataplane.model import Action, Draft, Pool, State
from dataplane.pipelines.guard import Judgement, with_judgement
from dataplane.pipelines.redact import with_redactions
from dataplane.pipelines.verdict import Verdict
from memplane.policy.effective import NamespacePolicies


def decide(
    draft: Draft, content: str, model_score: float | None, policies: NamespacePolicies, judgement: Judgement
) -> Verdict:
    """The verdict on a masked draft, before it is compared with other memories.

    `content` is its text, condensed; `model_score` the gate model's opinion, 0 to 1, None when it could not be asked.
    """
    scored = score(content, model_score, policies.rules, policies.write)
    decision = gate(draft, scored, policies.write)
    verdict = Verdict(decision.action, State.ACTIVE, decision, scored)
    if decision.layer is not None and draft.pool is Pool.SHARED and policies.shared_pool_approval:
        held = replace(verdict, state=State.PENDING_REVIEW)
        verdict = held.become(
            Action.PENDING_REVIEW, "SHARED_POOL_APPROVAL", "the shared pool needs a person's approval"
        )
    return with_judgement(with_redactions(verdict, draft.redactions), judgement)
