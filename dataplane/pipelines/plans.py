"""What an admitted draft does to what is there: each plan is one commit, its verdict, and the memory to show."""

from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit, ConflictRecord, DecisionRecord, Supersession
from dataplane.codec import Admission, expiry_us, new_memory, next_version, parse_body, plain, struct_of, timestamp
from dataplane.logic.conflict import Claim, Resolution, Standing, are_equals, resolve
from dataplane.logic.dedup import Neighbour
from dataplane.logic.fact_keys import weightier
from dataplane.logic.statement import Statement
from dataplane.logic.strength import after_hit
from dataplane.model import MAX_STRUCT_BYTES, MAX_TAGS, Action, Draft, Memory, Scope, State, Vector
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.neighbours import Shelf
from dataplane.pipelines.spaces import VectorSpace
from dataplane.pipelines.verdict import Verdict
from dataplane.ports import ContentKey
from memplane.policy.effective import NamespacePolicies
from memplane.v1 import memory_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A draft that the gate admitted, with everything that planning needs."""

    draft: Draft
    policies: NamespacePolicies
    admission: Admission
    space: VectorSpace
    embedding: Vector | None
    verdict: Verdict
    caller: Caller
    denies: str = ""
    """The derived key of the fact that the draft denies."""

    def at(self, now_us: int) -> "Admitted":
        """The same, settled at a later time."""
        return replace(self, admission=replace(self.admission, now_us=now_us))

    def without_key(self) -> "Admitted":
        """The same, stating no fact of its own."""
        return replace(self, draft=replace(self.draft, fact_key=""), denies="")

    def keyed(self, fact_key: str) -> "Admitted":
        """The same under a fact key."""
        return replace(self, draft=replace(self.draft, fact_key=fact_key))

    @property
    def fact_asked(self) -> str:
        """The key of the fact that it states or denies."""
        return self.draft.fact_key or self.denies

    @property
    def scope(self) -> Scope:
        """The draft's own namespace."""
        return Scope((self.draft.namespace,))

    @property
    def subject(self) -> tuple[str, str]:
        """Whose statement it is; those of one subject are settled one after another."""
        return self.draft.namespace, self.draft.subject_id

    @property
    def shelf(self) -> Shelf:
        """The memories among which it may be a repeat."""
        return Shelf(self.draft.namespace, self.draft.subject_id, self.draft.kind, self.draft.pool)

    @property
    def content(self) -> ContentKey:
        """What it has in common with memories of the same content."""
        draft = self.draft
        return ContentKey(draft.namespace, draft.subject_id, draft.kind, self.admission.content_hash)

    @property
    def expire_time_us(self) -> int | None:
        """When the draft's memory may be removed; None: never by itself."""
        return expiry_us(self.draft, self.admission)

    @property
    def begins_us(self) -> int:
        """From when the statement holds."""
        return self.draft.valid_from_us if self.draft.valid_from_us is not None else self.time_us

    @property
    def statement(self) -> Statement:
        """What the statement is told apart by."""
        draft = self.draft
        return Statement(
            content_hash=self.admission.content_hash,
            speaker=draft.speaker,
            fact_key=draft.fact_key,
            kind=draft.kind,
            event_time_us=draft.event_time_us,
            layer=self.admission.layer,
            session_id=draft.session_id,
        )

    @property
    def time_us(self) -> int:
        """When the statement was made: the event, else now."""
        return self.draft.event_time_us if self.draft.event_time_us is not None else self.admission.now_us


@dataclass(frozen=True, slots=True)
class Plan:
    """What to commit, how it turned out, the memory to show, and those that it changes, as they are before.

    `asks`: the memory that contradicts the draft with equal standing; the agent is advised to ask the user.
    """

    commit: Commit
    verdict: Verdict
    shown: Memory
    changes: tuple[Memory, ...] = ()
    asks: Memory | None = None


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
        embedding_model=admitted.space.model,
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
    memory = _new(admitted, state)
    return Plan(_commit(admitted, Change.CREATED, admitted.verdict, memory, 0), admitted.verdict, memory)


def _new(admitted: Admitted, state: State = State.ACTIVE) -> Memory:
    return new_memory(admitted.draft, admitted.admission, state, admitted.policies.decay.initial_strength)


def reinforce(admitted: Admitted, existing: Memory, code: str, message: str) -> Plan:
    """The existing memory, said again: as strong as a new one at least, with what this draft adds to it."""
    verdict = admitted.verdict.become(Action.MERGED, code, f"{message}: {existing.memory_id}")
    memory = _renewed(existing, admitted)
    commit = _commit(admitted, Change.MERGED, verdict, memory, existing.version)
    if existing.content_hash != admitted.admission.content_hash:
        commit = replace(commit, embedding=None)
    return Plan(commit, verdict, memory, (existing,))


def _strengthened(existing: Memory, admitted: Admitted) -> Memory:
    decay, now_us = admitted.policies.decay, admitted.admission.now_us
    strength = after_hit(existing.strength, existing.strength_time_us, now_us, decay)
    return replace(existing, strength=max(strength, decay.initial_strength), strength_time_us=now_us)


def _renewed(existing: Memory, admitted: Admitted) -> Memory:
    """Strengthened; as a next version where the draft adds something to it."""
    strengthened, message = _strengthened(existing, admitted), parse_body(existing)
    _keep_as_long(message, existing, admitted)
    _add_facts(message, existing, admitted)
    if message == parse_body(existing):
        return strengthened
    return next_version(strengthened, message, admitted.admission.now_us)


def _keep_as_long(message: memory_pb2.Memory, existing: Memory, admitted: Admitted) -> None:
    """In the higher of both layers, until the later of both ends, for the readers of both."""
    message.layer = memory_pb2.Layer.ValueType(max(existing.layer, admitted.admission.layer))
    message.pool = memory_pb2.Pool.ValueType(max(existing.pool, admitted.draft.pool))
    message.ClearField("expire_time")
    if existing.expire_time_us is not None and admitted.expire_time_us is not None:
        message.expire_time.CopyFrom(timestamp(max(existing.expire_time_us, admitted.expire_time_us)))


def _add_facts(message: memory_pb2.Memory, existing: Memory, admitted: Admitted) -> None:
    """What the draft tells beyond the content: its fact key, a better source, labels."""
    draft = admitted.draft
    message.fact_key = weightier(draft.fact_key, message.fact_key)
    if _outranks(admitted, existing):
        message.source.type = memory_pb2.SourceType.ValueType(draft.source.type)
        message.source.ref, message.source.operator_id = draft.source.ref, draft.source.operator_id
        message.confidence = admitted.admission.confidence
    _add_labels(message, parse_body(existing), draft)


def _outranks(admitted: Admitted, existing: Memory) -> bool:
    resolution = resolve(
        Claim(admitted.draft.source.type, 0), Claim(existing.source_type, 0), admitted.policies.conflict
    )
    return resolution.new_wins and resolution.rule == "SOURCE_PRIORITY"


def _add_labels(message: memory_pb2.Memory, old: memory_pb2.Memory, draft: Draft) -> None:
    """Tags and metadata of both, the draft's first, as far as they may go."""
    tags = list(dict.fromkeys((*draft.tags, *old.tags)))[:MAX_TAGS]
    if set(tags) != set(message.tags):
        del message.tags[:]
        message.tags.extend(tags)
    both = struct_of({**plain(old.metadata), **draft.metadata})
    if both.fields and both.ByteSize() <= MAX_STRUCT_BYTES:
        message.metadata.CopyFrom(both)


def repeat(admitted: Admitted, neighbour: Neighbour) -> Plan:
    """Nearly the same statement: the newer wording becomes the next version, unless a better source said the older."""
    existing = neighbour.memory
    if not _resolve(admitted, existing).new_wins:
        told = f"said before by a better or newer source ({neighbour.similarity:.2f})"
        return reinforce(admitted, existing, "SAME_STATEMENT", told)
    verdict = admitted.verdict.become(
        Action.UPDATED, "SAME_STATEMENT", f"newer wording of {existing.memory_id} ({neighbour.similarity:.2f})"
    )
    memory = _reworded(admitted, existing)
    return Plan(_commit(admitted, Change.UPDATED, verdict, memory, existing.version), verdict, memory, (existing,))


def restate(admitted: Admitted, fact: Memory) -> Plan:
    """The same fact in other words: as a repeat, however alike the words are."""
    if not _resolve(admitted, fact).new_wins:
        return reinforce(admitted, fact, "SAME_FACT", "a better or newer source states the same fact")
    verdict = admitted.verdict.become(Action.UPDATED, "SAME_FACT", f"{fact.memory_id} states the same fact")
    memory = _reworded(admitted, fact)
    return Plan(_commit(admitted, Change.UPDATED, verdict, memory, fact.version), verdict, memory, (fact,))


def doubt(admitted: Admitted, neighbour: Neighbour) -> Plan:
    """A new memory beside one that it may contradict: nobody is superseded, the caller hears of it."""
    old = neighbour.memory
    told = f"memory {old.memory_id} may say otherwise ({neighbour.similarity:.2f}); both stand"
    verdict, asks = _asking(admitted.verdict.become(admitted.verdict.action, "MAY_CONTRADICT", told), admitted, old)
    return replace(create(replace(admitted, verdict=verdict), State.ACTIVE), asks=asks)


def _asking(verdict: Verdict, admitted: Admitted, old: Memory) -> tuple[Verdict, Memory | None]:
    """With the advice to ask the user, where nothing else tells which of the two holds."""
    policy = admitted.policies.conflict
    new_standing = Standing(admitted.draft.source.type, admitted.admission.confidence)
    if not policy.clarify or not are_equals(new_standing, Standing(old.source_type, old.confidence), policy):
        return verdict, None
    told = f"ask the user which holds: memory {old.memory_id} says otherwise and is as well founded"
    return verdict.become(verdict.action, "CLARIFY", told), old


def _reworded(admitted: Admitted, existing: Memory) -> Memory:
    """The existing memory with the new statement in place of the old; nothing accumulates but distinct labels."""
    message, old = parse_body(_new(admitted)), parse_body(existing)
    message.id = existing.memory_id
    message.create_time.CopyFrom(old.create_time)
    message.fact_key = weightier(message.fact_key, old.fact_key)
    _keep_as_long(message, existing, admitted)
    _add_labels(message, old, admitted.draft)
    return next_version(_strengthened(existing, admitted), message, admitted.admission.now_us)


def claim(admitted: Admitted, same: Memory, fact: Memory) -> Plan:
    """The statement is stored without this fact key, and another memory holds the key: the winner gets it."""
    resolution = _resolve(admitted, fact)
    winner_id = same.memory_id if resolution.new_wins else fact.memory_id
    verdict = admitted.verdict.become(
        Action.MERGED, "SAME_CONTENT", f"the same content is already stored: {same.memory_id}"
    ).with_conflict(fact.memory_id, fact.fact_key, winner_id, resolution.rule)
    if not resolution.new_wins:
        memory = _strengthened(same, admitted)
        return Plan(_commit(admitted, Change.MERGED, verdict, memory, same.version), verdict, memory, (same,))
    memory = _renewed(same, admitted)
    commit = replace(
        _commit(admitted, Change.MERGED, verdict, memory, same.version),
        supersedes=(Supersession(fact.memory_id, fact.version, _ends_us(fact, memory)),),
        conflicts=(ConflictRecord(same.memory_id, fact.memory_id, fact.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, memory, (same, fact))


def contradict(admitted: Admitted, old: Memory) -> Plan:
    """Another statement under the same fact key: one stays ACTIVE, the other is SUPERSEDED, both stay in history."""
    if has_ended(old, admitted):
        return succeed(admitted, old)
    if _precedes(admitted, old):
        return _precede(admitted, old)
    resolution = _resolve(admitted, old)
    new = _new(admitted)
    if resolution.new_wins:
        return _supersede(admitted, new, old, resolution)
    return _lose(admitted, new, old, resolution)


def has_ended(memory: Memory, admitted: Admitted) -> bool:
    """Whether what the memory states was over, or the memory expired, before the draft's statement begins."""
    if memory.expire_time_us is not None and memory.expire_time_us <= admitted.admission.now_us:
        return True
    return is_over(memory, admitted)


def is_over(memory: Memory, admitted: Admitted) -> bool:
    """Whether what the memory states stopped to hold before the draft's statement begins."""
    return memory.valid_to_us is not None and memory.valid_to_us <= admitted.begins_us


def _precedes(admitted: Admitted, memory: Memory) -> bool:
    """Whether the draft's statement was over before the memory's began."""
    ends_us, begins_us = admitted.draft.valid_to_us, memory.valid_from_us
    return ends_us is not None and begins_us is not None and ends_us <= begins_us


def succeed(admitted: Admitted, old: Memory) -> Plan:
    """A new memory in place of one whose time is over; the old one stays in history, without a conflict."""
    verdict = admitted.verdict.become(
        admitted.verdict.action, "FACT_ENDED", f"memory {old.memory_id} stated it of a time that is over"
    )
    new = _derived(_new(admitted), old)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, new, 0),
        supersedes=(Supersession(old.memory_id, old.version, _ends_us(old, new)),),
    )
    return Plan(commit, verdict, new, (old,))


def _precede(admitted: Admitted, current: Memory) -> Plan:
    verdict = admitted.verdict.become(
        admitted.verdict.action, "FACT_ENDED", f"it is over; memory {current.memory_id} states the fact as it is since"
    )
    past = replace(_new(admitted), state=State.SUPERSEDED, superseded_by_id=current.memory_id)
    return Plan(_commit(admitted, Change.CREATED, verdict, past, 0), verdict, past)


def _resolve(admitted: Admitted, old: Memory) -> Resolution:
    told_us = old.event_time_us if old.event_time_us is not None else old.create_time_us
    new_claim = Claim(admitted.draft.source.type, admitted.time_us)
    return resolve(new_claim, Claim(old.source_type, told_us), admitted.policies.conflict)


def _ends_us(loser: Memory, winner: Memory) -> int:
    """When the loser stopped holding: when the winner began to, within the loser's own time."""
    ends_us = max(loser.valid_from_us or loser.create_time_us, winner.valid_from_us or winner.create_time_us)
    return ends_us if loser.valid_to_us is None else min(loser.valid_to_us, ends_us)


def _derived(new: Memory, old: Memory) -> Memory:
    message = parse_body(new)
    message.provenance.derived_from_ids.append(old.memory_id)
    return replace(new, body=message.SerializeToString())


def _supersede(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, new.memory_id, resolution.rule)
    verdict, asks = _asking(verdict, admitted, old)
    new = _derived(new, old)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, new, 0),
        supersedes=(Supersession(old.memory_id, old.version, _ends_us(old, new)),),
        conflicts=(ConflictRecord(new.memory_id, old.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, new, (old,), asks)


def _lose(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, old.memory_id, resolution.rule)
    verdict, asks = _asking(verdict, admitted, old)
    loser = replace(new, state=State.SUPERSEDED, valid_to_us=_ends_us(new, old), superseded_by_id=old.memory_id)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, loser, 0),
        conflicts=(ConflictRecord(old.memory_id, loser.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, loser, asks=asks)
