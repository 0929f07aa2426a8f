from dataclasses import replace

from dataplane.changes import AccessRecord
from dataplane.logic.accesses import merged
from dataplane.model import DAY_US

ONE = AccessRecord("mem_1", "acme.sales", 10, 0.1, 2.0, 0.1)


def test_accesses_of_one_memory_become_one_with_their_count_and_latest_time() -> None:
    later, earlier = replace(ONE, time_us=30, count=4), replace(ONE, time_us=20)
    assert merged([ONE, later, earlier]) == [replace(ONE, time_us=30, count=6)]


def test_memories_days_and_policies_stay_apart_in_order_of_time() -> None:
    others = [
        replace(ONE, time_us=DAY_US + 1),
        replace(ONE, memory_id="mem_2", time_us=5),
        replace(ONE, namespace="acme.hr", time_us=11),
        replace(ONE, hit_increment=0.2, time_us=12),
    ]
    found = merged([ONE, *others, ONE])
    assert [access.time_us for access in found] == [5, 10, 11, 12, DAY_US + 1]
    assert sum(access.count for access in found) == 6


def test_nothing_is_nothing() -> None:
    assert merged([]) == []
