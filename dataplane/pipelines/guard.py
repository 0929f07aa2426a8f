"""Attacks are found before a write is scored: what is suspect is kept for a person, or refused, as the policy says.

The stage stands behind redaction, so that no reason ever holds what was masked, and before the gate: an attack is
quarantined whatever it scores. Reasons name signals, never the text.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dataplane.codec import plain
from dataplane.logic.guard.features import Signal
from dataplane.logic.guard.history import MOST_WORDS, Writer, WriterHistory
from dataplane.logic.guard.reading import readings
from dataplane.logic.guard.suspicion import Reader, Trust, suspicion
from dataplane.logic.tokens import query_tokens
from dataplane.model import Action, Draft, Layer, SourceType, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.redact import CODE as SENSITIVE
from dataplane.pipelines.verdict import Verdict
from memplane.errors import InvalidField
from memplane.policy.effective import CompiledGuardRule, NamespacePolicies
from memplane.policy.guard import GuardAction, GuardPolicy
from memplane.v1 import memory_pb2

LONG = 4_000
"""Characters from which a text is read in a thread: some 4 ms (2026-11)."""
LONGEST_STATEMENT = 2_000
"""Characters of a statement whose words are compared with the writer's others. Unmeasured."""
PER_ATTACK, MOST_OF_ATTACKS = 0.1, 0.3
"""How suspect a writer is for each attack in the last hour, and at most. Unmeasured."""
MOST_DEPTH = 16
CODE = "SUSPECT"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the guard thinks: suspicion 0 to 1, the signals, strongest first, and what is to be done (None: nothing)."""

    suspicion: float = 0.0
    signals: tuple[Signal, ...] = ()
    action: GuardAction | None = None

    @property
    def told(self) -> str:
        """The reason, for people."""
        names = ", ".join(signal.name for signal in self.signals)
        return f"suspicion {self.suspicion:.2f}: {names} (guard_policy)"


class Guard:
    """Judges drafts and new texts of memories; remembers writers within bounds."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._history = WriterHistory()

    async def judge(self, draft: Draft, policies: NamespacePolicies, caller: Caller, now_us: int) -> Judgement:
        """What is to be done with a draft."""
        policy = policies.guard
        if not policy.enabled:
            return Judgement()
        text = "\n".join(_texts(draft))
        signals = await self._signals(text, policies)
        writer = _writer(draft, caller)
        words = frozenset(query_tokens(draft.content[:LONGEST_STATEMENT])[:MOST_WORDS])
        signals = (*signals, *self._habits(writer, words, policy, now_us))
        judgement = judged(signals, policy, draft.source.type.name)
        if not draft.validate_only:
            self._history.note(writer, words, now_us, is_attack=judgement.action is not None)
        return judgement

    async def judge_change(
        self, message: memory_pb2.Memory, before: memory_pb2.Memory, policies: NamespacePolicies
    ) -> Judgement:
        """What is to be done with a memory that is changed: its texts as they are now, if any is new."""
        old = set(_texts_of(before))
        text = "\n".join(_texts_of(message))
        if not policies.guard.enabled or old.issuperset(_texts_of(message)):
            return Judgement()
        judgement = judged(await self._signals(text, policies), policies.guard, SourceType(message.source.type).name)
        if judgement.action == "reject":
            raise InvalidField.one("memory", f"{judgement.told}; the policy refuses it")
        return judgement

    async def _signals(self, text: str, policies: NamespacePolicies) -> tuple[Signal, ...]:
        if len(text) >= LONG:
            return await asyncio.to_thread(self._found, text, policies.guard_rules)
        return self._found(text, policies.guard_rules)

    def _found(self, text: str, rules: Sequence[CompiledGuardRule]) -> tuple[Signal, ...]:
        return (*self._reader.signals(text), *_own(text, rules))

    def _habits(self, writer: Writer, words: frozenset[str], policy: GuardPolicy, now_us: int) -> Iterator[Signal]:
        burst = policy.burst
        past = self._history.past(writer, words, now_us - int(burst.window_s * 1_000_000), burst.similarity, now_us)
        if past.near_alike + 1 >= burst.statements:
            yield Signal("burst", burst.score, f"{past.near_alike + 1} near-alike statements at once")
        if past.attacks:
            yield Signal("writer", min(MOST_OF_ATTACKS, PER_ATTACK * past.attacks), f"{past.attacks} attacks before")


def with_judgement(verdict: Verdict, judgement: Judgement) -> Verdict:
    """The verdict with what the guard wants; what is refused or withheld already stays so."""
    if judgement.action is None or _is_refused_for_its_data(verdict):
        return verdict
    if judgement.action == "allow":
        return verdict.become(verdict.action, CODE, f"{judgement.told}; the policy allows it")
    if judgement.action == "reject":
        return verdict.become(Action.REJECTED, CODE, f"{judgement.told}; the policy refuses it")
    gate = verdict.gate
    kept = replace(gate, layer=Layer.SHORT_TERM) if gate.layer is None else gate
    held = replace(verdict, state=State.QUARANTINED, gate=kept)
    return held.become(Action.QUARANTINED, CODE, f"{judgement.told}; it is kept apart until a person has looked at it")


def _is_refused_for_its_data(verdict: Verdict) -> bool:
    return verdict.action is Action.REJECTED and any(code == SENSITIVE for code, _ in verdict.reasons)


def state_after(judgement: Judgement, state: State) -> State:
    """The state of a memory that was changed."""
    return State.QUARANTINED if judgement.action == "quarantine" else state


def judged(signals: Sequence[Signal], policy: GuardPolicy, source_type: str) -> Judgement:
    """What the policy makes of signals in a text of that source."""
    trust = Trust({str(name): weight for name, weight in policy.signals.items()}, getattr(policy.sources, source_type))
    score = suspicion(signals, trust)
    if score >= policy.reject_threshold:
        return Judgement(score, tuple(signals), "reject")
    return Judgement(score, tuple(signals), policy.action if score >= policy.threshold else None)


def _own(text: str, rules: Sequence[CompiledGuardRule]) -> Iterator[Signal]:
    if not rules:
        return
    found = readings(text)
    for rule in rules:
        if any(rule.pattern.search(reading) for reading in found):
            yield Signal(rule.signal, rule.score, "a rule of the policy")


def _writer(draft: Draft, caller: Caller) -> Writer:
    name = draft.source.operator_id or draft.agent_id or draft.speaker
    return Writer(caller.principal_id, draft.namespace, int(draft.source.type), name)


def _texts(draft: Draft) -> Iterator[str]:
    """Every free text of a draft that a model may come to read."""
    yield draft.content
    yield from (text for text in (draft.speaker, draft.category, draft.entity_type, draft.fact_key) if text)
    yield from draft.tags
    yield from _strings(draft.metadata, MOST_DEPTH)
    yield from _strings(draft.structured, MOST_DEPTH)


def _texts_of(message: memory_pb2.Memory) -> Iterator[str]:
    yield message.content
    yield from (message.speaker, message.category, message.entity_type, message.fact_key)
    yield from message.tags
    yield from _strings(plain(message.metadata), MOST_DEPTH)
    yield from _strings(plain(message.structured), MOST_DEPTH)


def _strings(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for key, below in value.items():
            yield str(key)
            yield from _strings(below, depth - 1)
    elif depth and isinstance(value, Sequence):
        for below in value:
            yield from _strings(below, depth - 1)
