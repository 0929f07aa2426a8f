"""How much one principal may ask of one process: calls a second by a token bucket, and calls at once.

Rules:
1. A bucket holds up to `burst` calls and gets `calls_per_s` more; a call takes one, or is refused. New limits hold
   from the next call on; what is in a bucket stays, up to the new burst.
2. A call under way counts until it ends, the time it waits in line included.
3. A bucket that is full again and has no call under way is forgotten: it is like one that was never there. Beyond
   MAX_PRINCIPALS the one that was idle longest is forgotten early, so that memory stays bounded; its principal may
   begin a new burst.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from memplane.errors import LimitReached
from memplane.policy.rbac import CallLimits

MAX_PRINCIPALS: Final = 10_000
"""Each takes about 300 bytes."""
SWEPT_EACH_CALL: Final = 2
"""Buckets looked at in turn at every call that makes a new one."""
CONCURRENCY_RETRY_S: Final = 0.5
"""When to come back after too many calls at once: nobody knows when one ends. Unmeasured."""


class _Bucket:
    """`calls` left at `time_s`, all of them again at `full_s`; `running` are under way."""

    __slots__ = ("calls", "full_s", "running", "time_s")

    def __init__(self, calls: float, time_s: float):
        self.calls = calls
        self.time_s = self.full_s = time_s
        self.running = 0


class CallLimiter:
    """`now_s` is a monotonic clock. Belongs to one event loop."""

    def __init__(self, now_s: Callable[[], float], max_principals: int = MAX_PRINCIPALS):
        self._now_s = now_s
        self._max_principals = max_principals
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self.refused_count = 0

    def __len__(self) -> int:
        return len(self._buckets)

    @contextmanager
    def taking(self, principal_id: str, limits: CallLimits) -> Iterator[None]:
        """One call of this principal, for as long as the block lasts. Raises LimitReached instead of entering it."""
        if limits.calls_per_s is None and limits.concurrency is None:
            yield
            return
        bucket = self._take(principal_id, limits)
        bucket.running += 1
        try:
            yield
        finally:
            bucket.running -= 1

    def _take(self, principal_id: str, limits: CallLimits) -> _Bucket:
        now_s, burst = self._now_s(), burst_of(limits)
        bucket = self._buckets.get(principal_id)
        if bucket is None:
            self._make_room(now_s)
            bucket = self._buckets[principal_id] = _Bucket(burst, now_s)
        self._buckets.move_to_end(principal_id)
        if limits.concurrency is not None and bucket.running >= limits.concurrency:
            self.refused_count += 1
            raise LimitReached("concurrency", limits.concurrency, CONCURRENCY_RETRY_S)
        if limits.calls_per_s is not None:
            self._pay(bucket, limits.calls_per_s, burst, now_s)
        return bucket

    def _pay(self, bucket: _Bucket, calls_per_s: float, burst: float, now_s: float) -> None:
        bucket.calls = min(burst, bucket.calls + (now_s - bucket.time_s) * calls_per_s)
        bucket.time_s = now_s
        if bucket.calls < 1.0:
            self.refused_count += 1
            raise LimitReached("calls_per_s", calls_per_s, (1.0 - bucket.calls) / calls_per_s)
        bucket.calls -= 1.0
        bucket.full_s = now_s + (burst - bucket.calls) / calls_per_s

    def _make_room(self, now_s: float) -> None:
        """Forgets the oldest that are idle and full again, and any idle one when there are too many."""
        for name in list(islice(self._buckets, SWEPT_EACH_CALL)):
            bucket = self._buckets[name]
            if bucket.running:
                self._buckets.move_to_end(name)
            elif bucket.full_s <= now_s or len(self._buckets) >= self._max_principals:
                del self._buckets[name]


def burst_of(limits: CallLimits) -> float:
    """How many calls a full bucket holds: `burst`, else one second's worth, at least 1."""
    return float(limits.burst) if limits.burst is not None else max(1.0, limits.calls_per_s or 1.0)
