"""Accesses of one memory are one change of its row, however many searches returned it."""

from collections.abc import Iterable
from dataclasses import replace

from dataplane.changes import AccessRecord
from dataplane.model import DAY_US


def merged(accesses: Iterable[AccessRecord]) -> list[AccessRecord]:
    """The same accesses with one record for each memory, day and policy: counts summed, the latest time.

    Strength is anchored at the latest time; what it lost between accesses of one batch (seconds) is passed over. In
    order of time.
    """
    found: dict[tuple[object, ...], AccessRecord] = {}
    for access in accesses:
        numbers = (access.hit_increment, access.max_strength, access.monthly_decay)
        place = (access.memory_id, access.namespace, access.time_us // DAY_US, *numbers)
        known = found.get(place)
        if known is not None:
            both = known.count + access.count
            access = replace(access, count=both, time_us=max(known.time_us, access.time_us))  # noqa: PLW2901 - merged
        found[place] = access
    return sorted(found.values(), key=lambda access: access.time_us)
