from hypothesis import given
from hypothesis import strategies as st

from memplane.client.batches import MAX_BYTES, cut
from memplane.v1 import memory_service_pb2 as pb


@given(st.lists(st.integers(0, 3_000_000), max_size=12))
def test_batches_keep_order_and_fit_a_message(sizes):
    requests = [pb.WriteMemoryRequest(namespace=str(index), content="x" * size) for index, size in enumerate(sizes)]
    batches = list(cut(requests, max_requests=5))
    assert [request for batch in batches for request in batch] == requests
    for batch in batches:
        message = pb.BatchWriteMemoriesRequest(requests=batch)
        assert 1 <= len(batch) <= 5
        assert len(batch) == 1 or message.ByteSize() <= MAX_BYTES


def test_nothing_makes_no_batch():
    assert list(cut([])) == []
