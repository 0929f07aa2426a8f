"""Queued writes as they lie in the queue and as their operations tell of them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from dataplane.changes import QueuedWrite
from dataplane.codec import struct_of
from dataplane.model import Draft
from dataplane.pipelines.settle import Settled
from dataplane.queued_codec import QueuedRequest, pack_queued, unpack_queued
from dataplane.server.requests import read_draft
from dataplane.server.tokens import consistency_token
from memplane.errors import InvalidField
from memplane.identity import Identity
from memplane.v1 import memory_service_pb2

FORMAT_CHECK = "something in it cannot be right; the memory's review shows it"
"""Instead of the message that quotes what it is."""


class QueuedRequests:
    """Packs and reads requests. `dimension` tells the embedder's at the time."""

    def __init__(self, dimension: Callable[[], int]):
        self._dimension = dimension

    def pack(
        self, request: memory_service_pb2.WriteMemoryRequest, draft: Draft, request_id: str, claims: frozenset[str]
    ) -> bytes:
        """The request as it is queued: its texts as the draft has them, under this request_id."""
        copy = memory_service_pb2.WriteMemoryRequest()
        copy.CopyFrom(request)
        copy.DiscardUnknownFields()  # what nobody reads nobody masks
        copy.request_id = request_id
        if draft.redactions:
            _put_texts(copy, draft)
        return pack_queued(QueuedRequest(copy, draft.payload_hash, draft.redactions, claims))

    def draft(self, write: QueuedWrite) -> Draft:
        """The draft of a queued write, read as of when it was accepted; raises InvalidField."""
        try:
            queued = unpack_queued(write.request)
        except ValueError as error:
            raise InvalidField.one("request", "what was queued is no write request") from error
        draft = read_draft(queued.request, write.time_us, self._dimension())
        return replace(draft, payload_hash=queued.payload_hash, redactions=queued.redactions)

    def identity(self, write: QueuedWrite) -> Identity:
        """Who wrote it, with what the token brought; without, where the bytes are no write request."""
        with suppress(ValueError):
            return Identity(write.principal_id, claims=unpack_queued(write.request).claims)
        return Identity(write.principal_id)

    def result(self, settled: Settled) -> memory_service_pb2.WriteMemoryResponse:
        """Decision, policy version and token; of the memory what says which one it is, and no content.

        Nor words of it in reasons: an operation outlives a memory that is erased.
        """
        given = settled.response
        result = memory_service_pb2.WriteMemoryResponse(
            decision=given.decision,
            policy_version=given.policy_version,
            degraded=given.degraded,
            consistency_token=consistency_token(settled.position) if settled.position else "",
        )
        for reason in result.decision.reasons:
            if reason.code == "FORMAT_CHECK":
                reason.message = FORMAT_CHECK
        if given.HasField("memory"):
            memory = given.memory
            result.memory.id, result.memory.namespace = memory.id, memory.namespace
            result.memory.layer, result.memory.state = memory.layer, memory.state
            result.memory.version, result.memory.etag = memory.version, memory.etag
        return result


def _put_texts(request: memory_service_pb2.WriteMemoryRequest, draft: Draft) -> None:
    """The free texts of a request as its draft has them; no embedding of what they were."""
    request.content, request.speaker, request.fact_key = draft.content, draft.speaker, draft.fact_key
    request.entity_type, request.category, request.source.ref = draft.entity_type, draft.category, draft.source.ref
    del request.tags[:]
    request.tags.extend(draft.tags)
    request.metadata.CopyFrom(struct_of(draft.metadata))
    request.structured.CopyFrom(struct_of(draft.structured))
    if draft.embedding is None:
        del request.embedding[:]
