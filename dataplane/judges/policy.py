"""What a policy makes of golden cases (`memplane.policy.cases`), found by the code that decides calls.

A text goes the way of a write up to its decision: normalised, masked, looked through for attacks, scored, let through
the gate; it is not condensed, and not compared with other memories. Hits are ranked as a search ranks them, without
`consensus` and whatever their number. It is NOW_US then.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

from dataplane.logic.gate_model import Opinion
from dataplane.logic.intent import read_intent
from dataplane.logic.normalise import normalise_content
from dataplane.logic.overlap import identifiers_held
from dataplane.logic.profiles.table import least_confidence
from dataplane.logic.rank import Ranking, RankInput, rank
from dataplane.model import DAY_US, Draft, Kind, Layer, Memory, Pool, Source, SourceType, State, StoredCandidate
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.decide import Asked, decide
from dataplane.pipelines.guard import Guard, Judgement
from dataplane.pipelines.redact import redacted
from dataplane.pipelines.verdict import Verdict
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.cases import (
    AccessCase,
    AccessGiven,
    Case,
    HitGiven,
    OrderCase,
    OrderGiven,
    WriteCase,
    WriteGiven,
)
from memplane.policy.cells import mask
from memplane.policy.effective import EffectivePolicies, NamespacePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot

NOW_US = 1_767_225_600_000_000
"""Midnight of 1 January 2026, UTC: the time of every case."""
_NOWHERE = "case"
"""Stands for the namespace, and for the writer, of a case that names none; the base policy governs it."""

T = TypeVar("T")


class PolicyJudge:
    """Finds what comes of cases, policy after policy; what it compiles for the guard is kept."""

    def __init__(self) -> None:
        self._guard = Guard()

    async def judge(self, policy: PolicySet, cases: Iterable[Case]) -> AsyncIterator[Any]:
        """What came of each case as plain JSON, in order."""
        snapshot = PolicySnapshot("cases", 1, NOW_US, EffectivePolicies(policy), AccessIndex(policy.rbac, None))
        for case in cases:
            yield await self._came(case, snapshot)

    async def _came(self, case: Case, snapshot: PolicySnapshot) -> Any:
        if isinstance(case, AccessCase):
            return _access(case.given, snapshot.access)
        policies = snapshot.policies.for_namespace(case.given.namespace or "")
        if isinstance(case, OrderCase):
            return _order(case.given, policies)
        assert isinstance(case, WriteCase)
        return await self._write(case.given, policies, Caller(Identity(_NOWHERE), snapshot))

    async def _write(self, given: WriteGiven, policies: NamespacePolicies, caller: Caller) -> dict[str, Any]:
        draft = await redacted(_draft(given), policies)
        judgement = await self._guard.judge(draft, policies, caller, NOW_US)
        opinion = None if given.model_score is None else Opinion(given.model_score, {})
        verdict = decide(Asked(draft, draft.content, opinion, judgement, NOW_US), policies)
        return _told(draft, verdict, judgement)


def _access(given: AccessGiven, access: AccessIndex) -> str:
    identity = _identity(given, access)
    allowed = 0 if identity is None else access.cells(identity, given.permission, given.namespace)
    asked = mask(_one(given.layer), _one(given.kind), _one(given.sensitivity))
    if not allowed & asked:
        return "deny"
    return "allow" if allowed & asked == asked else "partly"


def _one(name: T | None) -> tuple[T, ...]:
    return () if name is None else (name,)


def _identity(given: AccessGiven, access: AccessIndex) -> Identity | None:
    if given.token is not None:
        return access.by_token(given.token.subject, frozenset(given.token.claims), NOW_US + DAY_US)
    if given.spiffe_id is not None:
        return access.by_spiffe_id(given.spiffe_id)
    assert given.principal is not None
    return Identity(given.principal)


def _draft(given: WriteGiven) -> Draft:
    return Draft(
        namespace=given.namespace or _NOWHERE,
        content=normalise_content(given.text),
        kind=Kind[given.kind],
        layer_hint=None if given.layer is None else Layer[given.layer],
        session_id="session" if given.session else "",
        source=Source(SourceType[given.source]),
        pool=Pool.SHARED if given.shared else Pool.PRIVATE,
        validate_only=True,  # the guard keeps nothing of it
    )


def _told(draft: Draft, verdict: Verdict, judgement: Judgement) -> dict[str, Any]:
    layer = verdict.gate.layer
    rule = next(part for part in verdict.scored.parts if part.channel == "rule")
    return {
        "action": verdict.action.name,
        "layer": None if layer is None else layer.name,
        "score": verdict.score,
        "rule_score": rule.score,
        "text": draft.content,
        "reasons": [*(reason.code for reason in verdict.gate.reasons), *(code for code, _ in verdict.reasons)],
        "sensitive": sorted({found.type for found in draft.redactions}),
        "suspicion": judgement.suspicion,
        "signals": sorted({signal.name for signal in judgement.signals}),
    }


def _order(given: OrderGiven, policies: NamespacePolicies) -> list[str]:
    retrieve = policies.retrieve
    reads_times_at = None if retrieve.asked_time.use == "off" else NOW_US
    intent = read_intent(given.query, retrieve.recency_words, reads_times_at)
    ranking = Ranking(retrieve, policies.decay, policies.credibility, NOW_US, intent, given.task_type)
    named = frozenset(intent.identifiers)
    items = [
        RankInput(
            candidate=StoredCandidate(_memory(name, hit), None, hit.uses),
            similarity=hit.vector,
            text=hit.text,
            identifiers_held=identifiers_held(named, hit.content) if named else 0,
            says_query=bool(given.query) and hit.content == given.query,
        )
        for name, hit in given.hits.items()
    ]
    ranked, least = rank(items, ranking), least_confidence(retrieve)
    return [item.candidate.memory.memory_id for item in ranked if item.confidence >= least]


def _days_ago(days: float | None) -> int | None:
    return None if days is None else NOW_US - int(days * DAY_US)


def _memory(name: str, hit: HitGiven) -> Memory:
    """A memory of which ranking alone will ask."""
    told_us, used_us = _days_ago(hit.age_days), _days_ago(hit.last_used_days)
    return Memory(
        memory_id=name,
        namespace=_NOWHERE,
        subject_id="",
        session_id="",
        kind=Kind[hit.kind],
        layer=Layer.LONG_TERM,
        state=State.ACTIVE,
        pool=Pool.PRIVATE,
        category=hit.category,
        fact_key="",
        source_type=SourceType[hit.source],
        confidence=1.0,
        content_hash="",
        statement_key="",
        version=1,
        create_time_us=0,
        update_time_us=0,
        event_time_us=told_us,
        valid_from_us=None,
        valid_to_us=None,
        expire_time_us=None,
        superseded_by_id="",
        strength=1.0,
        strength_time_us=NOW_US,
        access_count=hit.uses,
        last_access_time_us=used_us,
        body=b"",
    )
