from contextlib import ExitStack

import pytest

from memplane.errors import LimitReached
from memplane.policy.rbac import CallLimits
from memplane.rpc.errors import code_of, status_of, trailers_of
from memplane.rpc.limits import CallLimiter

FREE = CallLimits()


class Ticks:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def taken(limiter: CallLimiter, who: str, limits: CallLimits, attempts: int) -> int:
    done = 0
    for _ in range(attempts):
        try:
            with limiter.taking(who, limits):
                done += 1
        except LimitReached:
            pass
    return done


def test_a_burst_is_let_in_and_then_so_many_a_second() -> None:
    now_s = Ticks()
    limiter, limits = CallLimiter(now_s), CallLimits(calls_per_s=10.0, burst=20)
    assert taken(limiter, "ann", limits, 50) == 20
    now_s.s += 0.5
    assert taken(limiter, "ann", limits, 50) == 5
    now_s.s += 3600.0
    assert taken(limiter, "ann", limits, 50) == 20


@pytest.mark.parametrize(("calls_per_s", "burst"), [(5.0, 5), (0.2, 1), (2.5, 2)])
def test_without_a_burst_a_second_is_worth_one(calls_per_s: float, burst: int) -> None:
    assert taken(CallLimiter(Ticks()), "ann", CallLimits(calls_per_s=calls_per_s), 50) == burst


def test_one_principal_does_not_use_up_anothers_calls() -> None:
    limiter, limits = CallLimiter(Ticks()), CallLimits(calls_per_s=1.0)
    assert taken(limiter, "ann", limits, 50) == 1
    assert taken(limiter, "ben", limits, 50) == 1
    assert taken(limiter, "cid", FREE, 50) == 50
    assert len(limiter) == 2


def test_calls_at_once_are_counted_until_they_end_also_by_failing() -> None:
    limiter, limits = CallLimiter(Ticks()), CallLimits(concurrency=2)
    with ExitStack() as under_way:
        for _ in range(2):
            under_way.enter_context(limiter.taking("ann", limits))
        assert taken(limiter, "ann", limits, 3) == 0
        assert taken(limiter, "ben", limits, 3) == 3
    with pytest.raises(ValueError, match="of the call"), limiter.taking("ann", limits):
        raise ValueError("of the call")
    assert taken(limiter, "ann", limits, 3) == 3


def test_new_limits_hold_from_the_next_call_on() -> None:
    now_s = Ticks()
    limiter = CallLimiter(now_s)
    assert taken(limiter, "ann", CallLimits(calls_per_s=1.0, burst=2), 9) == 2
    assert taken(limiter, "ann", FREE, 9) == 9
    now_s.s += 1.0
    assert taken(limiter, "ann", CallLimits(calls_per_s=100.0), 900) == 100
    assert taken(limiter, "ann", CallLimits(calls_per_s=1.0, burst=1), 9) == 0


def test_the_refusal_says_which_limit_and_when_to_come_back() -> None:
    now_s = Ticks()
    limiter, limits = CallLimiter(now_s), CallLimits(calls_per_s=4.0, burst=1)
    taken(limiter, "ann", limits, 1)
    with pytest.raises(LimitReached) as raised, limiter.taking("ann", limits):
        pass
    error = raised.value
    assert code_of(error).name == "RESOURCE_EXHAUSTED"
    assert (error.metadata["limit"], error.retry_after_s) == ("calls_per_s", 0.25)
    assert ("grpc-retry-pushback-ms", "250") in trailers_of(error, status_of(error))
    assert limiter.refused_count == 1


def test_memory_stays_bounded_over_many_principals() -> None:
    now_s = Ticks()
    limiter, limits = CallLimiter(now_s, max_principals=100), CallLimits(calls_per_s=0.001, concurrency=5)
    with limiter.taking("busy", limits):
        for number in range(10_000):
            assert taken(limiter, f"p{number}", limits, 1) == 1
        assert len(limiter) <= 101
        assert taken(limiter, "busy", limits, 1) == 0
    now_s.s += 1e6
    for number in range(60):
        taken(limiter, f"q{number}", limits, 1)
    assert len(limiter) <= 61
