"""A queued write's bytes: a line of JSON, then the request as it may be kept.

The line holds what the masked request cannot tell any more: the payload hash of what was given, so that a retry is
known again, what was masked, so that the decision tells it, and the claims of the token that it came with, which bring
the groups that let it be written.
"""

import json
from dataclasses import astuple, dataclass

from google.protobuf.message import DecodeError

from dataplane.model import Redaction
from memplane.v1 import memory_service_pb2


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A masked request, and what it cannot tell any more."""

    request: memory_service_pb2.WriteMemoryRequest
    payload_hash: str
    redactions: tuple[Redaction, ...] = ()
    claims: frozenset[str] = frozenset()


def pack_queued(queued: QueuedRequest) -> bytes:
    """Its bytes."""
    head = {
        "payload_hash": queued.payload_hash,
        "redactions": [astuple(item) for item in queued.redactions],
        "claims": sorted(queued.claims),
    }
    return json.dumps(head).encode() + b"\n" + queued.request.SerializeToString()


def unpack_queued(data: bytes) -> QueuedRequest:
    """What was packed. Raises ValueError when these are no such bytes."""
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        redactions = tuple(Redaction(*item) for item in head["redactions"])
        request = memory_service_pb2.WriteMemoryRequest.FromString(body)
        return QueuedRequest(request, str(head["payload_hash"]), redactions, frozenset(map(str, head["claims"])))
    except (DecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("not the bytes of a queued write") from error
