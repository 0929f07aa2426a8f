"""Forgets one memory: SOFT hides it everywhere and can be undone, HARD removes it and leaves a tombstone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit, Erasure, RequestRecord
from dataplane.codec import etag_of, next_version, parse_body
from dataplane.errors import BackendUnavailable, DuplicateRequest, StaleVersion
from dataplane.model import Memory, Scope, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.get import find
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.redact import redacted_reason
from dataplane.pipelines.requests import Identified
from dataplane.pipelines.sight import require_found
from dataplane.ports import Clock, RecordStore
from memplane.errors import MemoryNotFound, Overloaded, StaleEtag, Unavailable
from memplane.v1 import memory_service_pb2

ATTEMPTS = 5
"""How often a change is planned again when somebody else was faster; then the caller hears of it. Unmeasured."""

REMOVAL_BUDGET_S = 0.5
"""How long a call waits for the indexes to drop the memory; what is left is named as pending. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Which memory to forget, how, and why. `etag` "": whatever is current."""

    memory_id: str
    hard: bool
    etag: str
    reason: str
    request: Identified


@dataclass(frozen=True, slots=True)
class ForgetParts:
    """What forgetting needs of the world.

    `cache_owes`: whether the cache has yet to drop one of the namespaces or to bury one of the memories.
    """

    store: RecordStore
    projectors: Projectors
    cache_owes: Callable[[Iterable[str], Iterable[str]], bool]
    clock: Clock


class ForgetPipeline:
    """Forgets memories."""

    def __init__(self, parts: ForgetParts):
        self._parts = parts

    async def forget(
        self, forgetting: Forgetting, caller: Caller, deadline_s: float
    ) -> tuple[memory_service_pb2.ForgetMemoryResponse, int]:
        """The answer, without its token, and the position that covers the removal."""
        namespace = forgetting.request.namespace
        caller.require("memory.forget", namespace)
        policies = caller.snapshot.policies.for_namespace(namespace)
        forgetting = replace(forgetting, reason=redacted_reason(forgetting.reason, policies))
        try:
            for _ in range(ATTEMPTS):
                done = await self._attempt(forgetting, caller, deadline_s)
                if done is not None:
                    return await self._finish(*done, namespace, hard=forgetting.hard, deadline_s=deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        raise Overloaded("too many writers change the same memory; try again", retry_after_s=0.2)

    async def _finish(
        self,
        response: memory_service_pb2.ForgetMemoryResponse,
        position: int,
        namespace: str,
        *,
        hard: bool,
        deadline_s: float,
    ) -> tuple[memory_service_pb2.ForgetMemoryResponse, int]:
        projectors = self._parts.projectors
        await projectors.wait_for({response.id: position}, REMOVAL_BUDGET_S)
        holding = await projectors.holding(response.id, position, erased=hard, deadline_s=deadline_s)
        owed = ["cache"] if self._parts.cache_owes([namespace], [response.id]) else []
        response.pending_backends[:] = [*holding, *owed]
        return response, position

    async def _attempt(
        self, forgetting: Forgetting, caller: Caller, deadline_s: float
    ) -> tuple[memory_service_pb2.ForgetMemoryResponse, int] | None:
        store, now_us = self._parts.store, self._parts.clock.now_us()
        known = await forgetting.request.first_answer(store, caller, now_us, deadline_s)
        if known is not None:
            return _replayed(known, forgetting, caller), await store.last_position(deadline_s)
        memory = await self._find(forgetting, deadline_s)
        require_found(caller, "memory.forget", memory)
        if forgetting.etag and forgetting.etag != etag_of(memory.version):
            raise StaleEtag(forgetting.etag, etag_of(memory.version))
        response = _response(forgetting, caller)
        request = forgetting.request.record(caller, response.SerializeToString(), now_us)
        try:
            return response, await self._remove(memory, forgetting, caller, request, deadline_s)
        except StaleVersion:
            return None
        except DuplicateRequest:
            first = await forgetting.request.answer_of_first(store, caller, now_us, deadline_s)
            return _replayed(first, forgetting, caller), await store.last_position(deadline_s)

    async def _remove(
        self,
        memory: Memory,
        forgetting: Forgetting,
        caller: Caller,
        request: RequestRecord | None,
        deadline_s: float,
    ) -> int:
        """The position of the removal; raises StaleVersion or DuplicateRequest."""
        now_us = self._parts.clock.now_us()
        if forgetting.hard:
            erasure = Erasure(
                scope=Scope((memory.namespace,)),
                memory_id=memory.memory_id,
                now_us=now_us,
                principal_id=caller.principal_id,
                reason=forgetting.reason,
                expected_version=memory.version,
                request=request,
            )
            return await self._parts.store.erase(erasure, deadline_s)
        commit = replace(_soft(memory, forgetting, caller, now_us), request=request)
        result = (await self._parts.store.commit([commit], deadline_s))[0]
        if result.error is not None:
            raise result.error
        return result.position

    async def _find(self, forgetting: Forgetting, deadline_s: float) -> Memory:
        """The memory; one softly forgotten before can still be forgotten HARD."""
        namespace = forgetting.request.namespace
        if not forgetting.hard:
            return await find(
                self._parts.store, namespace, forgetting.memory_id, self._parts.clock.now_us(), deadline_s
            )
        memory = await self._parts.store.get(Scope((namespace,)), forgetting.memory_id, deadline_s)
        if memory is None:
            raise MemoryNotFound(forgetting.memory_id, namespace)
        return memory


def _replayed(known: bytes, forgetting: Forgetting, caller: Caller) -> memory_service_pb2.ForgetMemoryResponse:
    """The first answer; an emptied one (the memory was erased since) said no more than this."""
    return memory_service_pb2.ForgetMemoryResponse.FromString(known) if known else _response(forgetting, caller)


def _response(forgetting: Forgetting, caller: Caller) -> memory_service_pb2.ForgetMemoryResponse:
    mode = memory_service_pb2.FORGET_MODE_HARD if forgetting.hard else memory_service_pb2.FORGET_MODE_SOFT
    return memory_service_pb2.ForgetMemoryResponse(
        id=forgetting.memory_id, mode=mode, policy_version=caller.snapshot.version
    )


def _soft(memory: Memory, forgetting: Forgetting, caller: Caller, now_us: int) -> Commit:
    hidden = replace(next_version(memory, parse_body(memory), now_us), state=State.SOFT_DELETED)
    return Commit(
        scope=Scope((memory.namespace,)),
        namespace=memory.namespace,
        now_us=now_us,
        principal_id=caller.principal_id,
        change=Change.FORGOTTEN,
        reason=forgetting.reason,
        memory=hidden,
        expected_version=memory.version,
    )
