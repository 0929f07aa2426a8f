"""What a draft comes to by the policy alone: score, gate, formats, advice, shared pool, sensitive data, guard."""

from dataclasses import dataclass, replace

from dataplane.logic.advice import advice
from dataplane.logic.formats import faults
from dataplane.logic.gate import gate, kept_short
from dataplane.logic.gate_model import Opinion
from dataplane.logic.passing import is_passing
from dataplane.logic.score import score
from dataplane.model import Draft, Layer, Pool, State
from dataplane.pipelines.guard import Judgement, with_judgement
from dataplane.pipelines.redact import with_redactions
from dataplane.pipelines.verdict import Verdict
from memplane.policy.effective import NamespacePolicies


@dataclass(frozen=True, slots=True)
class Asked:
    """A masked draft before it is compared with other memories.

    `content` is its text, condensed; `opinion` the gate model's, None when it could not be asked; `now_us` the time of
    the write.
    """

    draft: Draft
    content: str
    opinion: Opinion | None
    judgement: Judgement
    now_us: int


def decide(asked: Asked, policies: NamespacePolicies) -> Verdict:
    """The verdict on a draft by the policy alone."""
    draft, write = asked.draft, policies.write
    scored = score(asked.content, asked.opinion, policies.rules, write)
    decision = gate(draft, scored, write)
    if decision.layer is Layer.LONG_TERM and not scored.direct and write.passing and _is_passing(asked):
        decision = kept_short(decision, write)
    verdict = _advised(_in_format(Verdict(decision.action, State.ACTIVE, decision, scored), asked, policies), asked)
    if decision.layer is not None and draft.pool is Pool.SHARED and policies.shared_pool_approval:
        verdict = verdict.hold("SHARED_POOL_APPROVAL", "the shared pool needs a person's approval")
    verdict = _of_sensitive_statements(verdict, asked.opinion, policies)
    return with_judgement(with_redactions(verdict, draft.redactions), asked.judgement)


def _is_passing(asked: Asked) -> bool:
    told_us = asked.draft.event_time_us
    return asked.draft.layer_hint is None and is_passing(asked.content, asked.now_us if told_us is None else told_us)


def _in_format(verdict: Verdict, asked: Asked, policies: NamespacePolicies) -> Verdict:
    """Held for review when a format check of the policy fails."""
    if verdict.gate.layer is None:
        return verdict
    for fault in faults(asked.content, policies.write.format_checks, policies.write.amount_words):
        verdict = verdict.hold("FORMAT_CHECK", f"{fault.text} (format_checks: {fault.check})")
    return verdict


def _advised(verdict: Verdict, asked: Asked) -> Verdict:
    if asked.opinion is None or verdict.gate.layer not in {Layer.LONG_TERM, Layer.KNOWLEDGE}:
        return verdict
    told = advice(asked.opinion, asked.draft)
    return replace(verdict, reasons=(*verdict.reasons, *((reason.code, reason.message) for reason in told)))


def _of_sensitive_statements(verdict: Verdict, opinion: Opinion | None, policies: NamespacePolicies) -> Verdict:
    """With a reason where the text states something private; held for review where the policy wants that."""
    likely = 0.0 if opinion is None else opinion.outputs.get("sensitive", 0.0)
    if verdict.gate.layer is None or likely < policies.sensitive.statements_threshold:
        return verdict
    told = f"it says something private, by the model ({likely:.2f})"
    if policies.sensitive.statements == "review":
        return verdict.hold("SENSITIVE_STATEMENT", f"{told}; a person is to see it (sensitive_policy)")
    return verdict.become(verdict.action, "SENSITIVE_STATEMENT", told)
