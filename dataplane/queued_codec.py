"""A queued write's bytes: a line of JSON, then the request as it may be kept.

The line holds what the masked request cannot tell any more: the payload hash of what was given, so that a retry is
known again, and what was masked, so that the decision tells it.
"""

import json
from collections.abc import Sequence
from dataclasses import astuple

from google.protobuf.message import DecodeError

from dataplane.model import Redaction
from memplane.v1 import memory_service_pb2


def pack_queued(
    request: memory_service_pb2.WriteMemoryRequest, payload_hash: str, redactions: Sequence[Redaction]
) -> bytes:
    """The bytes of a masked request."""
    head = {"payload_hash": payload_hash, "redactions": [astuple(item) for item in redactions]}
    return json.dumps(head).encode() + b"\n" + request.SerializeToString()


def unpack_queued(data: bytes) -> tuple[memory_service_pb2.WriteMemoryRequest, str, tuple[Redaction, ...]]:
    """The request, the payload hash and what was masked. Raises ValueError when these are no such bytes."""
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        redactions = tuple(Redaction(*item) for item in head["redactions"])
        return memory_service_pb2.WriteMemoryRequest.FromString(body), str(head["payload_hash"]), redactions
    except (DecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("not the bytes of a queued write") from error
