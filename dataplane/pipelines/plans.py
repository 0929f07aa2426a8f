"""What an admitted draft does to what is there: each plan is one commit, its verdict, and the memory to show."""

from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit, ConflictRecord, DecisionRecord, Supersession
from dataplane.codec import Admission, expiry_us, new_memory, next_version, parse_body, timestamp
from dataplane.logic.conflict import Claim, Resolution, resolve
from dataplane.logic.dedup import Neighbour
from dataplane.logic.strength import after_hit
from dataplane.model import Action, Draft, Memory, Pool, Scope, State, Vector
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.verdict import Verdict
from memplane.policy.effective import NamespacePolicies
from memplane.v1 import memory_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A draft that the gate admitted, with everything that planning needs."""

    draft: Draft
    policies: NamespacePolicies
    admission: Admission
    embedding: Vector | None
    embedding_model: str
    verdict: Verdict
    caller: Caller

    @property
    def scope(self) -> Scope:
        """The draft's own namespace."""
        return Scope((self.draft.namespace,))

    @property
    def expire_time_us(self) -> int | None:
        """When the draft's memory may be removed; None: never by itself."""
        return expiry_us(self.draft, self.admission)

    @property
    def time_us(self) -> int:
        """When the statement was made: the event, else now."""
        return self.draft.event_time_us if self.draft.event_time_us is not None else self.admission.now_us


@dataclass(frozen=True, slots=True)
class Plan:
    """What to commit, how it turned out, and the memory to show."""

    commit: Commit
    verdict: Verdict
    shown: Memory


def _commit(admitted: Admitted, change: Change, verdict: Verdict, memory: Memory, expected_version: int) -> Commit:
    new_content = memory.version > expected_version
    return Commit(
        scope=admitted.scope,
        namespace=admitted.draft.namespace,
        now_us=admitted.admission.now_us,
        principal_id=admitted.caller.principal_id,
        change=change,
        memory=memory,
        embedding=admitted.embedding if new_content else None,
        embedding_model=admitted.embedding_model,
        expected_version=expected_version,
        decision=_decision_record(admitted, verdict),
    )


def _decision_record(admitted: Admitted, verdict: Verdict) -> DecisionRecord:
    return DecisionRecord(
        action=verdict.action,
        score=verdict.score,
        policy_version=admitted.caller.snapshot.version,
        payload=verdict.message().SerializeToString(),
    )


def create(admitted: Admitted, state: State) -> Plan:
    """A new memory in the given state."""
    strength = admitted.policies.decay.initial_strength
    memory = new_memory(admitted.draft, admitted.admission, state, strength)
    return Plan(_commit(admitted, Change.CREATED, admitted.verdict, memory, 0), admitted.verdict, memory)


def reinforce(admitted: Admitted, existing: Memory, code: str, message: str) -> Plan:
    """The existing memory, said again: as strong as a new one at least, and kept as long and as high as this one."""
    verdict = admitted.verdict.become(Action.MERGED, code, f"{message}: {existing.memory_id}")
    memory = _renewed(_strengthened(existing, admitted), admitted)
    commit = _commit(admitted, Change.MERGED, verdict, memory, existing.version)
    if existing.content_hash != admitted.admission.content_hash:
        commit = replace(commit, embedding=None)
    return Plan(commit, verdict, memory)


def _strengthened(existing: Memory, admitted: Admitted) -> Memory:
    decay, now_us = admitted.policies.decay, admitted.admission.now_us
    strength = after_hit(existing.strength, existing.strength_time_us, now_us, decay)
    return replace(existing, strength=max(strength, decay.initial_strength), strength_time_us=now_us)


def _renewed(memory: Memory, admitted: Admitted) -> Memory:
    """The next version where this draft earned a higher layer, a later end or more readers, else the same memory."""
    layer, pool = admitted.admission.layer, admitted.draft.pool
    kept = _kept_as_long(replace(memory, layer=layer, pool=pool, expire_time_us=admitted.expire_time_us), memory)
    if (kept.layer, kept.pool, kept.expire_time_us) == (memory.layer, memory.pool, memory.expire_time_us):
        return memory
    return next_version(kept, parse_body(kept), admitted.admission.now_us)


def _kept_as_long(memory: Memory, other: Memory) -> Memory:
    """The memory in the higher of two layers, until the later of two ends, for the readers of both."""
    layer, pool = max(memory.layer, other.layer), max(memory.pool, other.pool)
    expire_time_us = _later_end(memory.expire_time_us, other.expire_time_us)
    message = parse_body(memory)
    message.layer = memory_pb2.Layer.ValueType(layer)
    message.pool = memory_pb2.Pool.ValueType(pool)
    message.ClearField("expire_time")
    if expire_time_us is not None:
        message.expire_time.CopyFrom(timestamp(expire_time_us))
    return replace(memory, layer=layer, pool=pool, expire_time_us=expire_time_us, body=message.SerializeToString())


def _later_end(one_us: int | None, other_us: int | None) -> int | None:
    return None if one_us is None or other_us is None else max(one_us, other_us)


def repeat(admitted: Admitted, neighbour: Neighbour) -> Plan:
    """Nearly the same statement: the newer wording becomes the next version, unless a better source said the older."""
    existing = neighbour.memory
    if not _resolve(admitted, existing).new_wins:
        return reinforce(
            admitted,
            existing,
            "SAME_STATEMENT",
            f"said before by a better or newer source ({neighbour.similarity:.2f})",
        )
    verdict = admitted.verdict.become(
        Action.UPDATED, "SAME_STATEMENT", f"newer wording of {existing.memory_id} ({neighbour.similarity:.2f})"
    )
    memory = _reworded(admitted, existing)
    return Plan(_commit(admitted, Change.UPDATED, verdict, memory, existing.version), verdict, memory)


def _reworded(admitted: Admitted, existing: Memory) -> Memory:
    """The existing memory with the new statement in place of the old; nothing accumulates but distinct tags."""
    fresh = parse_body(new_memory(admitted.draft, admitted.admission, State.ACTIVE, existing.strength))
    old = parse_body(existing)
    fresh.id = existing.memory_id
    fresh.create_time.CopyFrom(old.create_time)
    fresh.fact_key = fresh.fact_key or old.fact_key
    del fresh.tags[:]
    fresh.tags.extend(list(dict.fromkeys((*admitted.draft.tags, *old.tags)))[:64])
    if not admitted.draft.metadata:
        fresh.metadata.CopyFrom(old.metadata)
    strengthened = _strengthened(existing, admitted)
    worded = next_version(strengthened, fresh, admitted.admission.now_us)
    return _kept_as_long(replace(worded, layer=admitted.admission.layer, pool=Pool(fresh.pool)), existing)


def contradict(admitted: Admitted, old: Memory) -> Plan:
    """Another statement under the same fact key: one stays ACTIVE, the other is SUPERSEDED, both stay in history."""
    resolution = _resolve(admitted, old)
    new = new_memory(admitted.draft, admitted.admission, State.ACTIVE, admitted.policies.decay.initial_strength)
    if resolution.new_wins:
        return _supersede(admitted, new, old, resolution)
    return _lose(admitted, new, old, resolution)


def _resolve(admitted: Admitted, old: Memory) -> Resolution:
    told_us = old.event_time_us if old.event_time_us is not None else old.create_time_us
    new_claim = Claim(admitted.draft.source.type, admitted.time_us)
    return resolve(new_claim, Claim(old.source_type, told_us), admitted.policies.conflict)


def _ends_us(loser: Memory, winner: Memory) -> int:
    """When the loser stopped holding: when the winner began to, never before it began itself."""
    return max(loser.valid_from_us or loser.create_time_us, winner.valid_from_us or winner.create_time_us)


def _supersede(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, new.memory_id, resolution.rule)
    message = parse_body(new)
    message.provenance.derived_from_ids.append(old.memory_id)
    new = replace(new, body=message.SerializeToString())
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, new, 0),
        supersedes=(Supersession(old.memory_id, old.version, _ends_us(old, new)),),
        conflicts=(ConflictRecord(new.memory_id, old.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, new)


def _lose(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, old.memory_id, resolution.rule)
    loser = replace(new, state=State.SUPERSEDED, valid_to_us=_ends_us(new, old), superseded_by_id=old.memory_id)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, loser, 0),
        conflicts=(ConflictRecord(old.memory_id, loser.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, loser)
