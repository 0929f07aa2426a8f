import pytest

from dataplane.model import Redaction
from dataplane.queued_codec import QueuedRequest, pack_queued, unpack_queued
from memplane.v1 import memory_service_pb2 as pb


def test_what_is_packed_is_unpacked() -> None:
    request = pb.WriteMemoryRequest(namespace="dept", content="a\nb", request_id="r")
    redactions = (Redaction("EMAIL", "content", 2, "mask"), Redaction("PASSWORD", "tags", 1, "reject"))
    queued = QueuedRequest(request, "hash", redactions, frozenset({"sales", "staff"}))
    assert unpack_queued(pack_queued(queued)) == queued


@pytest.mark.parametrize(
    "data", [b"", b"request", b"{}\n", b'{"payload_hash": "", "redactions": [[1]]}\n', b"[]\n\xff"]
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not the bytes of a queued write"):
        unpack_queued(data)
