from memplane.authentication.steady_clock import BACK_US, SteadyClock


class Clock:
    def __init__(self) -> None:
        self.time_us = 1_000_000_000
        self.running_s = 0.0

    def now_us(self) -> int:
        return self.time_us


def test_it_goes_with_the_clock_and_never_slower_than_time_passes() -> None:
    clock = Clock()
    steady = SteadyClock(clock, lambda: clock.running_s)
    clock.time_us += 5_000_000
    assert steady.now_us() == clock.time_us
    clock.running_s = 10.0
    assert steady.now_us() == 1_010_000_000
    assert steady.back_us() == 0
    clock.time_us -= BACK_US
    assert steady.now_us() == 1_010_000_000
    assert steady.back_us() == BACK_US + 5_000_000
