"""What the system gives: ids from its randomness, in order of time so that rows of one time lie together; a clock."""

import secrets
import time

from dataplane.ports import Clock


class Ids:
    """Makes ids that nobody can guess and no two calls share: 12 hex digits of the time in ms, 20 random ones."""

    def __init__(self, clock: Clock):
        self._clock = clock

    def memory_id(self) -> str:
        """A new `mem_…`."""
        return f"mem_{self._stamped()}"

    def search_id(self) -> str:
        """A new `srch_…`."""
        return f"srch_{self._stamped()}"

    def request_id(self) -> str:
        """A new `req_…`."""
        return f"req_{self._stamped()}"

    def _stamped(self) -> str:
        return f"{self._clock.now_us() // 1000:012x}{secrets.token_hex(10)}"


def running_s() -> float:
    """Seconds by a clock that nobody sets; where the system has such a one, it goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
