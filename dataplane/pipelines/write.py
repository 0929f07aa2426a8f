"""A write: policy limits, idempotency, redact, guard, condense, embed, score, gate, settle, project.

Several drafts go through in chunks: the texts of the next one are embedded while this one is settled, those that do not
concern each other by one commit (`settle`).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit, DecisionRecord
from dataplane.codec import Admission
from dataplane.errors import BackendUnavailable, DuplicateRequest
from dataplane.logic.fact_keys import derive
from dataplane.logic.normalise import content_hash
from dataplane.model import Action, Draft, Layer, Scope, Vector
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.decide import Asked, decide
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.guard import Guard, Judgement
from dataplane.pipelines.held_back import HeldBack
from dataplane.pipelines.limits import check_allowed, check_limits, condensed, permissions_for
from dataplane.pipelines.plans import Admitted
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.redact import redacted
from dataplane.pipelines.replays import Replays
from dataplane.pipelines.requests import identified
from dataplane.pipelines.settle import Settled, Settlement
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.pipelines.turn import next_turn
from dataplane.pipelines.unrelated import Refused
from dataplane.pipelines.verdict import Verdict
from dataplane.ports import Clock, RecordStore
from memplane.errors import MemPlaneError, PermissionDenied, Unavailable
from memplane.policy.cells import cell
from memplane.policy.effective import NamespacePolicies
from memplane.policy.names import SourceName
from memplane.v1 import memory_service_pb2

EMBEDDED_TOGETHER = 32
SETTLED_TOGETHER = 128
"""A chunk: at most so many drafts whose texts are to be embedded (unmeasured), and so many in all: 128 store 1.5 times
as many a second as 32 and hold the event loop for 40 ms at most; 512 store 1.1 times as many as 128 and hold it for
140 ms (SQLite, embeddings given, 2026-11)."""

PROJECTION_BUDGET_S = 0.05
"""How long a call waits for its newest change to be projected before it is answered; afterwards searches read it from
the record store. Unmeasured."""

Outcome = Settled | MemPlaneError


@dataclass(frozen=True, slots=True)
class WriteParts:
    """What a write needs of the world."""

    store: RecordStore
    spaces: Spaces
    projectors: Projectors
    settlement: Settlement
    guard: Guard
    clock: Clock
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A draft within its policy's limits; `content` is what is stored, `original` what was given when condensed."""

    space: VectorSpace
    draft: Draft
    policies: NamespacePolicies
    content: str
    original: str
    judgement: Judgement


_Step = _Prepared | Settled | MemPlaneError


class WritePipeline:
    """Decides and stores drafts."""

    def __init__(self, parts: WriteParts):
        self._parts = parts
        self._replays = Replays(parts.store, parts.clock)

    async def write(self, draft: Draft, caller: Caller, deadline_s: float) -> Settled:
        """The outcome of one draft; raises what stood in its way."""
        outcome = (await self.write_batch([draft], caller, deadline_s))[0]
        if isinstance(outcome, MemPlaneError):
            raise outcome
        return outcome

    async def write_batch(
        self, drafts: Sequence[Draft | MemPlaneError], caller: Caller, deadline_s: float
    ) -> list[Outcome]:
        """The outcome of each draft, index-aligned; an error given instead of a draft is its own outcome."""
        chunks = list(_chunks(drafts))
        outcomes: list[Outcome] = []
        held_back = HeldBack()
        ahead = asyncio.ensure_future(self._embed_chunk(chunks[0], caller, deadline_s)) if chunks else None
        try:
            for index, chunk in enumerate(chunks):
                assert ahead is not None
                if index:
                    await next_turn(len(chunk))
                steps, embeddings, degraded = await ahead
                more = index + 1 < len(chunks)
                ahead = (
                    asyncio.ensure_future(self._embed_chunk(chunks[index + 1], caller, deadline_s)) if more else None
                )
                tried = [_unless_held(step, held_back) for step in steps]
                settled = await self._settle_chunk(tried, embeddings, caller, degraded, deadline_s)
                for draft, outcome in zip(chunk, settled, strict=True):
                    held_back.note(draft, outcome)
                outcomes.extend(settled)
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)
        await projected(self._parts.projectors, _newest(outcomes))
        return outcomes

    async def _embed_chunk(
        self, drafts: Sequence[Draft | MemPlaneError], caller: Caller, deadline_s: float
    ) -> tuple[list[_Step], list[Vector | None], DegradedNotes]:
        space, degraded = self._parts.spaces.current, DegradedNotes()
        allowed = [_allowed(draft, caller) for draft in drafts]
        known = await self._replays.of_all(allowed, caller, deadline_s)
        steps = [await self._prepared(known.get(index, step), space, caller) for index, step in enumerate(allowed)]
        return steps, await _embed(steps, space, degraded, deadline_s), degraded

    async def _prepared(self, step: Draft | Settled | MemPlaneError, space: VectorSpace, caller: Caller) -> _Step:
        if not isinstance(step, Draft):
            return step
        try:
            return await self._within_limits(step, space, caller)
        except MemPlaneError as error:
            return error

    async def _within_limits(self, draft: Draft, space: VectorSpace, caller: Caller) -> _Prepared:
        policies = caller.snapshot.policies.for_namespace(draft.namespace)
        check_limits(draft, policies)
        clean = await redacted(draft, policies)
        judgement = await self._parts.guard.judge(clean, policies, caller, self._parts.clock.now_us())
        content = await condensed(clean.content, policies, space.embedder.count_tokens)
        original = clean.content if content != clean.content else ""
        return _Prepared(space, clean, policies, content, original, judgement)

    async def replay(self, draft: Draft, caller: Caller, deadline_s: float) -> Settled | None:
        """The first answer to this request_id, if there was one; raises RequestIdReused."""
        return await self._replays.of(draft, caller, deadline_s)

    async def _settle_chunk(
        self,
        steps: Sequence[_Step],
        embeddings: Sequence[Vector | None],
        caller: Caller,
        degraded: DegradedNotes,
        deadline_s: float,
    ) -> list[Outcome]:
        judged = {
            index: self._judge(step, embeddings[index], caller)
            for index, step in enumerate(steps)
            if isinstance(step, _Prepared)
        }
        outcomes: dict[int, Outcome] = {
            index: step for index, step in enumerate(steps) if not isinstance(step, _Prepared)
        }
        outcomes |= {index: denied for index, item in judged.items() if (denied := _denied(item)) is not None}
        judged = {index: item for index, item in judged.items() if index not in outcomes}
        together = await self._parts.settlement.settle_together(list(judged.values()), degraded, deadline_s)
        held_back = HeldBack()
        for (index, item), outcome in zip(judged.items(), together, strict=True):
            known = outcome or held_back.outcome(item.draft)
            outcomes[index] = known or await self._decide(item, caller, degraded, deadline_s)
            held_back.note(item.draft, outcomes[index])
        return [outcomes[index] for index in range(len(steps))]

    async def _decide(
        self, judged: Admitted | Refused, caller: Caller, degraded: DegradedNotes, deadline_s: float
    ) -> Outcome:
        try:
            if isinstance(judged, Refused):
                return await self._log(judged, deadline_s)
            late = judged.at(self._parts.clock.now_us())
            return await self._parts.settlement.settle(late, degraded, deadline_s)
        except DuplicateRequest:
            return await self._replays.of_first(judged.draft, caller, deadline_s)
        except MemPlaneError as error:
            return error
        except BackendUnavailable as error:
            return Unavailable(error.backend)

    def _judge(self, prepared: _Prepared, embedding: Vector | None, caller: Caller) -> Admitted | Refused:
        verdict = _verdict(prepared, embedding, self._parts.clock.now_us())
        if verdict.action is Action.REJECTED:
            return _refusal(prepared.draft, verdict, caller, self._parts.clock.now_us())
        return self._admit(prepared, embedding, verdict, caller)

    def _admit(self, prepared: _Prepared, embedding: Vector | None, verdict: Verdict, caller: Caller) -> Admitted:
        layer = verdict.gate.layer
        assert layer is not None
        draft, denies = _keyed(prepared, layer, self._parts.clock.now_us())
        admission = Admission(
            memory_id=self._parts.new_id(),
            content=prepared.content,
            content_hash=content_hash(draft.namespace, prepared.content, draft.kind),
            layer=layer,
            confidence=_confidence(draft, prepared.policies),
            principal_id=caller.principal_id,
            policy_version=caller.snapshot.version,
            now_us=self._parts.clock.now_us(),
            original_content=prepared.original,
            layer_ttl_us=_layer_ttl_us(layer, prepared.policies),
            unscored=verdict.gate.unscored,
        )
        return Admitted(
            draft=draft,
            policies=prepared.policies,
            admission=admission,
            space=prepared.space,
            embedding=embedding,
            verdict=verdict,
            caller=caller,
            denies=denies,
        )

    async def _log(self, refused: Refused, deadline_s: float) -> Settled:
        if not refused.draft.validate_only:
            result = (await self._parts.store.commit([refused.commit], deadline_s))[0]
            if result.error is not None:
                raise result.error
        return Settled(refused.response, 0)


def _chunks(drafts: Sequence[Draft | MemPlaneError]) -> Iterator[Sequence[Draft | MemPlaneError]]:
    """The drafts in chunks that are full by one or the other measure."""
    start = texts = 0
    for index, draft in enumerate(drafts):
        texts += isinstance(draft, Draft) and draft.embedding is None
        if texts == EMBEDDED_TOGETHER or index + 1 - start == SETTLED_TOGETHER:
            yield drafts[start : index + 1]
            start, texts = index + 1, 0
    if start < len(drafts):
        yield drafts[start:]


def _unless_held(step: _Step, held_back: HeldBack) -> _Step:
    """The step, or its outcome where an earlier one of its subject was put off."""
    return step if not isinstance(step, _Prepared) else held_back.outcome(step.draft) or step


def _allowed(draft: Draft | MemPlaneError, caller: Caller) -> Draft | MemPlaneError:
    if isinstance(draft, MemPlaneError):
        return draft
    try:
        check_allowed(draft, caller)
    except MemPlaneError as error:
        return error
    return draft


def _denied(judged: Admitted | Refused) -> PermissionDenied | None:
    """Why the caller may not write what the gate made of the draft."""
    if isinstance(judged, Refused):
        return None
    draft, layer = judged.draft, judged.admission.layer
    for permission in permissions_for(draft.pool):
        if not judged.caller.cells(permission, draft.namespace) & cell(layer, draft.kind, 0):
            return PermissionDenied(permission, draft.namespace)
    return None


async def _embed(
    steps: Sequence[_Step], space: VectorSpace, degraded: DegradedNotes, deadline_s: float
) -> list[Vector | None]:
    wanted = {
        index: step.content
        for index, step in enumerate(steps)
        if isinstance(step, _Prepared) and (step.draft.embedding is None or step.original)
    }
    made: dict[int, Vector] = {}
    if wanted:
        try:
            vectors = await space.embedder.embed_passages(list(wanted.values()), deadline_s)
            made = dict(zip(wanted, vectors, strict=True))
        except BackendUnavailable as error:
            degraded.add(error.backend, "BACKEND_UNAVAILABLE", "stored without an embedding, which follows later")
    return [
        made.get(index, step.draft.embedding) if isinstance(step, _Prepared) else None
        for index, step in enumerate(steps)
    ]


def _verdict(prepared: _Prepared, embedding: Vector | None, now_us: int) -> Verdict:
    model = prepared.space.gate_model
    opinion = model.opinion(embedding, prepared.content) if model is not None and embedding is not None else None
    return decide(Asked(prepared.draft, prepared.content, opinion, prepared.judgement, now_us), prepared.policies)


def _refusal(draft: Draft, verdict: Verdict, caller: Caller, now_us: int) -> Refused:
    message = verdict.message()
    response = memory_service_pb2.WriteMemoryResponse(decision=message, policy_version=caller.snapshot.version)
    logged = DecisionRecord(verdict.action, verdict.score, caller.snapshot.version, message.SerializeToString())
    commit = Commit(
        scope=Scope((draft.namespace,)),
        namespace=draft.namespace,
        now_us=now_us,
        principal_id=caller.principal_id,
        change=Change.CREATED,
        decision=logged,
        request=identified(draft).record(caller, response.SerializeToString(), now_us),
    )
    return Refused(draft, response, commit)


def _newest(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """The last change of a call; what came before it is projected before it."""
    stored = [item for item in outcomes if isinstance(item, Settled) and item.position and item.response.memory.id]
    newest = max(stored, key=lambda item: item.position, default=None)
    return {newest.response.memory.id: newest.position} if newest is not None else {}


async def projected(projectors: Projectors, changes: Mapping[str, int]) -> None:
    """Gives committed changes (memory id to outbox position) a moment to be projected."""
    if changes:
        with suppress(BackendUnavailable):  # they are committed, and found from the record store until they are
            await projectors.wait_for(changes, PROJECTION_BUDGET_S)


def _keyed(prepared: _Prepared, layer: Layer, now_us: int) -> tuple[Draft, str]:
    """The draft under the key of the fact that its text states, and the key of one that it denies, "" for none."""
    draft = prepared.draft
    ahead = draft.valid_from_us is not None and draft.valid_from_us > now_us
    if draft.fact_key or not prepared.policies.write.dedup or ahead:
        return draft, ""
    found = derive(draft, prepared.content, layer)
    return (replace(draft, fact_key=found.key), "") if found.holds else (draft, found.key)


def _layer_ttl_us(layer: Layer, policies: NamespacePolicies) -> int | None:
    return policies.cache.working_memory_ttl_s * 1_000_000 if layer is Layer.WORKING else None


def _confidence(draft: Draft, policies: NamespacePolicies) -> float:
    if draft.confidence is not None:
        return draft.confidence
    name: SourceName = draft.source.type.name  # type: ignore[assignment]  # SourceType and SourceName have equal names
    return float(getattr(policies.credibility, name))
