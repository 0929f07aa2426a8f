"""A data plane whose clock is off: `python -m tests.chaos.skewed_plane SECONDS FLAGS...`."""

import sys
import time

from dataplane.main import main
from memplane.process import SystemClock


def skew(seconds: int) -> None:
    """Every SystemClock of this process is so many seconds ahead."""

    def now_us(_self: SystemClock) -> int:
        return time.time_ns() // 1000 + seconds * 1_000_000

    setattr(SystemClock, "now_us", now_us)  # noqa: B010 - that is the fault


if __name__ == "__main__":
    skew(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
