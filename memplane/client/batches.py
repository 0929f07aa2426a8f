"""Cuts many proposals into batches that the contract and gRPC accept."""

from collections.abc import Iterable, Iterator

from memplane.v1 import memory_service_pb2 as pb

MAX_REQUESTS = 1000
# gRPC's default limit of a message is 4 MiB; the rest is for framing and field tags.
MAX_BYTES = 4 * 1024 * 1024 - 64 * 1024
TAG_BYTES = 6


def cut(
    requests: Iterable[pb.WriteMemoryRequest], max_requests: int = MAX_REQUESTS
) -> Iterator[list[pb.WriteMemoryRequest]]:
    """The requests in order, in lists of at most `max_requests` and 4 MiB; one that is larger travels alone."""
    batch: list[pb.WriteMemoryRequest] = []
    batch_bytes = 0
    for request in requests:
        request_bytes = request.ByteSize() + TAG_BYTES
        if batch and (len(batch) == max_requests or batch_bytes + request_bytes > MAX_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(request)
        batch_bytes += request_bytes
    if batch:
        yield batch
