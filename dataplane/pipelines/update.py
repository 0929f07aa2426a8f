"""An update: the named fields get new values, the memory a new version; the old one stays in history."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit
from dataplane.codec import answer, etag_of, next_version, parse_body, receipt
from dataplane.errors import BackendUnavailable, DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion
from dataplane.logic.fact_keys import derived_from, is_derived
from dataplane.logic.normalise import content_hash
from dataplane.model import Kind, Memory, Pool, Scope, State, Vector
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.get import find, state_now
from dataplane.pipelines.guard import Guard, state_after
from dataplane.pipelines.limits import check_size, condensed
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.redact import must_wait, redact_message, redacted_reason
from dataplane.pipelines.requests import Identified
from dataplane.pipelines.sight import READ, keep_readable, may, require, require_found
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.pipelines.write import projected
from dataplane.ports import Clock, RecordStore
from memplane.errors import (
    DuplicateContentExists,
    MemoryNotFound,
    Overloaded,
    StaleEtag,
    Unavailable,
    WrongState,
)
from memplane.policy.effective import NamespacePolicies
from memplane.v1 import memory_pb2, memory_service_pb2

ATTEMPTS = 5
"""How often a change is planned again when somebody else was faster; then the caller hears of it. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of a memory: `apply` puts the new values into a message of it. `etag` "": whatever is current."""

    memory_id: str
    etag: str
    reason: str
    request: Identified
    apply: Callable[[memory_pb2.Memory], None]


@dataclass(frozen=True, slots=True)
class UpdateParts:
    """What an update needs of the world."""

    store: RecordStore
    spaces: Spaces
    projectors: Projectors
    clock: Clock
    guard: Guard


class UpdatePipeline:
    """Changes memories."""

    def __init__(self, parts: UpdateParts):
        self._parts = parts

    async def update(
        self, revision: Revision, caller: Caller, deadline_s: float
    ) -> tuple[memory_service_pb2.UpdateMemoryResponse, int]:
        """The answer, without its token, and the position that covers the change."""
        caller.require("memory.write", revision.request.namespace)
        try:
            for _ in range(ATTEMPTS):
                done = await self._attempt(revision, caller, deadline_s)
                if done is not None:
                    await projected(self._parts.projectors, {revision.memory_id: done[1]})
                    return done
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        raise Overloaded("too many writers change the same memory; try again", retry_after_s=0.2)

    async def _attempt(
        self, revision: Revision, caller: Caller, deadline_s: float
    ) -> tuple[memory_service_pb2.UpdateMemoryResponse, int] | None:
        """One try; None when somebody else changed the memory in between and no etag forbids trying again."""
        store, now_us = self._parts.store, self._parts.clock.now_us()
        known = await revision.request.first_answer(store, caller, now_us, deadline_s)
        if known is not None:
            position = await store.last_position(deadline_s)
            return _replayed(known, revision, caller), position
        old = await find(store, revision.request.namespace, revision.memory_id, now_us, deadline_s)
        _check(old, revision, caller)
        space, degraded = self._parts.spaces.current, DegradedNotes()
        new = await self._revised(old, revision, caller, now_us)
        require(caller, "memory.write", new)
        embedding = await self._embedding(old, new, space, degraded, deadline_s)
        state, strength = state_now(new, caller, now_us)
        response = memory_service_pb2.UpdateMemoryResponse(
            memory=answer(new, state, strength) if may(caller, READ, new) else receipt(new, state),
            policy_version=caller.snapshot.version,
            degraded=degraded.messages(),
        )
        commit = replace(_commit(revision, new, caller, response), embedding=embedding, embedding_model=space.model)
        result = (await store.commit([commit], deadline_s))[0]
        if isinstance(result.error, DuplicateRequest):
            first = await revision.request.answer_of_first(store, caller, now_us, deadline_s)
            return _replayed(first, revision, caller), await store.last_position(deadline_s)
        return None if _retries(result.error, revision) else (response, result.position)

    async def _embedding(
        self, old: Memory, new: Memory, space: VectorSpace, degraded: DegradedNotes, deadline_s: float
    ) -> Vector | None:
        """The old one where the content stayed, else a new one."""
        content = parse_body(new).content
        if content == parse_body(old).content:
            scope = Scope((old.namespace,))
            rows = await self._parts.store.fetch(scope, [old.memory_id], space.model, 0, deadline_s)
            # The row may be newer by now; then the commit fails on its version.
            if rows and rows[0].embedding is not None:
                return rows[0].embedding
        try:
            return (await space.embedder.embed_passages([content], deadline_s))[0]
        except BackendUnavailable as error:
            degraded.add(error.backend, "BACKEND_UNAVAILABLE", "stored without an embedding, which follows later")
            return None

    async def _revised(self, old: Memory, revision: Revision, caller: Caller, now_us: int) -> Memory:
        message, given = parse_body(old), parse_body(old)
        revision.apply(message)
        policies = caller.snapshot.policies.for_namespace(old.namespace)
        is_reworded = message.content != given.content
        if is_reworded:
            check_size("memory.content", message.content, policies)
        found = await redact_message(message, given, policies)
        judgement = await self._parts.guard.judge_change(message, given, policies)
        if is_reworded:
            await _put_content(message, message.content, policies, self._parts.spaces.current)
            message.fact_key = _key_after(message)
        message.content_hash = content_hash(old.namespace, message.content, Kind(message.kind))
        waits = old.pool is Pool.SHARED and policies.shared_pool_approval and is_reworded
        state = State.PENDING_REVIEW if waits or must_wait(found) else old.state
        return replace(next_version(old, message, now_us), state=state_after(judgement, state))


def _key_after(message: memory_pb2.Memory) -> str:
    """The fact key of a memory with new content: a derived one goes when the content states another fact."""
    if not is_derived(message.fact_key):
        return message.fact_key
    found = derived_from(message.content, Kind(message.kind), message.speaker)
    return message.fact_key if found == (message.fact_key, True) else ""


async def _put_content(
    message: memory_pb2.Memory, content: str, policies: NamespacePolicies, space: VectorSpace
) -> None:
    message.content = await condensed(content, policies, space.embedder.count_tokens)
    message.provenance.condensed = message.content != content
    message.provenance.original_content = content if message.provenance.condensed else ""


def _commit(
    revision: Revision,
    new: Memory,
    caller: Caller,
    response: memory_service_pb2.UpdateMemoryResponse,
) -> Commit:
    return Commit(
        scope=Scope((new.namespace,)),
        namespace=new.namespace,
        now_us=new.update_time_us,
        principal_id=caller.principal_id,
        change=Change.UPDATED,
        reason=redacted_reason(revision.reason, caller.snapshot.policies.for_namespace(new.namespace)),
        memory=new,
        expected_version=new.version - 1,
        request=revision.request.record(caller, response.SerializeToString(), new.update_time_us),
    )


def _replayed(known: bytes, revision: Revision, caller: Caller) -> memory_service_pb2.UpdateMemoryResponse:
    """The first answer, as far as it may still be read; MemoryNotFound when the memory was forgotten for good since."""
    if not known:
        raise MemoryNotFound(revision.memory_id, revision.request.namespace)
    response = memory_service_pb2.UpdateMemoryResponse.FromString(known)
    keep_readable(response.memory, caller)
    return response


def _check(old: Memory, revision: Revision, caller: Caller) -> None:
    require_found(caller, "memory.write", old)
    if old.pool is Pool.SHARED:
        require_found(caller, "share.propose", old)
    if revision.etag and revision.etag != etag_of(old.version):
        raise StaleEtag(revision.etag, etag_of(old.version))
    if old.state is not State.ACTIVE:
        raise WrongState(old.memory_id, old.state.name)


def _retries(error: Exception | None, revision: Revision) -> bool:
    """False when the commit stood, True when it lost a race it may try again; raises what is final."""
    if error is None:
        return False
    if isinstance(error, DuplicateContent):
        raise DuplicateContentExists(error.memory_id)
    if isinstance(error, DuplicateFact):
        raise DuplicateContentExists(error.memory_id, "holds this fact_key")
    if isinstance(error, StaleVersion):
        if revision.etag:
            raise StaleEtag(revision.etag, etag_of(error.current))
        return True
    raise error
