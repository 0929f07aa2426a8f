"""What an index entry says, how it stands to the record store, and where a sample looks."""

import random

import numpy as np

from dataplane.changes import IndexProgress
from dataplane.logic.fingerprint import fingerprint
from dataplane.logic.id_sample import UnseenIds
from dataplane.logic.index_faults import Fault, counts_agree, fault_of
from dataplane.model import Held, IndexEntry, Pool
from tests.contract.builders import vector_of


def entry_of(**content: object) -> IndexEntry:
    return IndexEntry("mem_1", 1, "dept.a", Pool.PRIVATE, {}, **content)  # type: ignore[arg-type]


def test_a_fingerprint_tells_vectors_and_tokens_apart_but_not_the_order_of_tokens() -> None:
    assert fingerprint(entry_of(embedding=vector_of(1))) == fingerprint(entry_of(embedding=vector_of(1).copy()))
    assert fingerprint(entry_of(embedding=vector_of(1))) != fingerprint(entry_of(embedding=vector_of(2)))
    assert fingerprint(entry_of(tokens=("a", "b"))) == fingerprint(entry_of(tokens=("b", "a")))
    assert fingerprint(entry_of(tokens=("a", "b"))) != fingerprint(entry_of(tokens=("ab",)))
    assert len(fingerprint(entry_of())) == 16


def test_a_fingerprint_passes_over_what_half_precision_cannot_tell() -> None:
    vector = np.array([0.5, 0.25], dtype=np.float32)
    assert fingerprint(entry_of(embedding=vector)) == fingerprint(entry_of(embedding=vector + np.float32(1e-7)))


def test_each_fault_has_its_name() -> None:
    held = Held(2, "dept.a", "f1")
    assert fault_of(held, held) is None
    assert fault_of(None, None) is None
    assert fault_of(held, None) is Fault.MISSING
    assert fault_of(None, held) is Fault.ORPHAN
    assert fault_of(held, Held(1, "dept.a", "f1")) is Fault.STALE
    assert fault_of(held, Held(3, "dept.a", "f1")) is Fault.STALE
    assert fault_of(held, Held(2, "dept.a", "f2")) is Fault.DIFFERENT
    assert fault_of(held, Held(2, "dept.b", "f1")) is Fault.DIFFERENT


def test_an_unknown_fingerprint_is_no_fault() -> None:
    assert fault_of(Held(2, "dept.a"), Held(2, "dept.a", "f2")) is None
    assert fault_of(Held(2, "dept.a", "f1"), Held(2, "dept.a")) is None


def test_counts_may_differ_by_what_waits_was_given_up_or_came_meanwhile() -> None:
    level, behind = IndexProgress("i", 9, 0, 0, None), IndexProgress("i", 9, 2, 1, None)
    assert counts_agree(10, 10, level, 0)
    assert not counts_agree(10, 9, level, 0)
    assert counts_agree(10, 9, level, 1)
    assert counts_agree(10, 7, behind, 0)
    assert not counts_agree(10, 6, behind, 0)


def sample(ids: list[str], run: int, draws: int, seed: int) -> list[str]:
    """What `draws` runs of `run` ids find that begin where the rule says."""
    drawn, unseen = random.Random(seed), UnseenIds()
    found: dict[str, None] = {}
    for _ in range(draws):
        after_id = unseen.draw(drawn.random())
        if after_id is None:
            break
        rows = [each for each in ids if each > after_id][:run]
        unseen.saw(after_id, rows[-1] if rows else None)
        found.update(dict.fromkeys(rows))
    return list(found)


def ids_at(*times_ms: int) -> list[str]:
    drawn = random.Random(7)
    return sorted(f"mem_{time_ms:012x}{drawn.getrandbits(80):020x}" for time_ms in times_ms)


def test_a_sample_reaches_every_burst_though_most_of_the_range_is_empty() -> None:
    bursts = [1_600_000_000_000, 1_700_000_000_000, 1_700_500_000_000, 1_760_000_000_000]
    ids = ids_at(*(start + offset for start in bursts for offset in range(0, 100_000, 100)))
    found = sample(ids, run=10, draws=200, seed=3)
    per_burst = [sum(f"mem_{start:012x}" <= each < f"mem_{start + 100_000:012x}" for each in found) for start in bursts]
    assert sum(per_burst) == len(found) > 1_000
    assert min(per_burst) > 100, per_burst


def test_a_sample_of_everything_is_everything_and_then_nothing_is_left() -> None:
    ids = ids_at(*range(1_700_000_000_000, 1_700_000_000_050))
    assert sorted(sample(ids, run=5, draws=10_000, seed=1)) == ids


def test_ids_that_are_not_ours_lie_somewhere() -> None:
    unseen = UnseenIds()
    unseen.saw("mem_1", "mem_zebra")
    unseen.saw("mem_0", None)
    assert unseen.draw(0.5) is None
