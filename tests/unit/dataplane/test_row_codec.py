import numpy as np
import pytest

from dataplane.model import Kind, Layer, Pool, SourceType, State, StoredCandidate
from dataplane.row_codec import pack, pack_memory, unpack, unpack_memory
from tests.contract.builders import memory_of, vector_of

FULL = memory_of(
    "mem_2",
    "记住 \x00 this",
    kind=Kind.SUMMARY,
    layer=Layer.WORKING,
    state=State.SUPERSEDED,
    pool=Pool.SHARED,
    source_type=SourceType.EXTERNAL_DOC,
    subject_id="user-\u4e2d\u2028",
    event_time_us=-1,
    valid_from_us=0,
    valid_to_us=2**62,
    expire_time_us=1,
    superseded_by_id="mem_3",
    strength=0.1 + 0.2,
    access_count=7,
    last_access_time_us=5,
    body=bytes(range(256)),
)


def test_rows_read_back_exactly() -> None:
    rows = [
        StoredCandidate(memory_of("mem_1"), None, 0),
        StoredCandidate(FULL, vector_of(1), 12),
        StoredCandidate(memory_of("mem_3", body=b""), vector_of(2), 1),
    ]
    head, read = unpack(pack({"position": 5, "hits": [[0.1]]}, rows))
    assert head == {"position": 5, "hits": [[0.1]]}
    assert [row.memory for row in read] == [row.memory for row in rows]
    assert [row.recent_access_count for row in read] == [0, 12, 1]
    assert read[0].embedding is None
    for before, after in zip(rows[1:], read[1:], strict=True):
        assert before.embedding is not None
        assert after.embedding is not None
        assert np.array_equal(before.embedding, after.embedding)
    assert isinstance(read[1].memory.kind, Kind)


def test_nothing_is_something() -> None:
    assert unpack(pack({}, [])) == ({}, [])


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"x", lambda data: data[:3]])
def test_damaged_bytes_are_refused(damage: object) -> None:
    assert callable(damage)
    data = pack({"a": 1}, [StoredCandidate(FULL, vector_of(1), 2)])
    with pytest.raises(ValueError, match=r"."):
        unpack(damage(data))


def test_one_memory_comes_back_as_it_was() -> None:
    assert unpack_memory(pack_memory(FULL)) == FULL


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\2[]", b"nonsense", pack({}, []), pack({"layout": "other"}, [])])
def test_what_is_no_memory_of_this_layout_is_none(data: bytes) -> None:
    assert unpack_memory(data) is None


@pytest.mark.parametrize("cut", [1, 5, 200])
def test_a_memory_that_was_cut_is_none(cut: int) -> None:
    assert unpack_memory(pack_memory(FULL)[:-cut]) is None
