"""When a breaker opens, and what closes it again."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.breaker import WINDOW_CALLS, WINDOW_S, Breaker, BreakerState, Threshold

HALF = Threshold(failure_ratio=0.5, min_failures=5)


@dataclass
class Rig:
    """A breaker and the time."""

    now_s: float = 0.0
    breaker: Breaker = field(default_factory=lambda: Breaker(0.0))

    def call(self, *, well: bool, threshold: Threshold = HALF) -> bool:
        """One call, a moment after the last; whether it was admitted."""
        self.now_s += 0.01
        ticket = self.breaker.admit()
        if ticket is None:
            return False
        if well:
            self.breaker.succeeded(ticket, self.now_s)
        else:
            self.breaker.failed(ticket, self.now_s, threshold, "no answer")
        return True

    def calls(self, outcomes: str) -> None:
        for outcome in outcomes:
            self.call(well=outcome == "+")

    def probe(self) -> None:
        self.breaker.probed(self.breaker.probing(), self.now_s)

    def stands(self) -> BreakerState:
        return self.breaker.state


def opened() -> Rig:
    rig = Rig()
    rig.calls("-----")
    assert rig.stands() is BreakerState.OPEN
    return rig


def test_it_opens_at_the_least_number_of_failures_and_not_before() -> None:
    rig = Rig()
    rig.calls("----")
    assert rig.stands() is BreakerState.CLOSED
    rig.calls("-")
    assert (rig.stands(), rig.breaker.opened_count, rig.breaker.reason) == (BreakerState.OPEN, 1, "no answer")
    assert not rig.call(well=True)


def test_a_share_of_failures_below_the_ratio_does_not_open_it() -> None:
    rig = Rig()
    rig.calls("+-+" * 30)
    assert rig.stands() is BreakerState.CLOSED
    rig.calls("+-" * 10)
    assert rig.stands() is BreakerState.OPEN


def test_a_run_of_failures_opens_it_whatever_went_well_before() -> None:
    rig = Rig()
    rig.calls("+" * WINDOW_CALLS + "----")
    assert rig.stands() is BreakerState.CLOSED
    rig.calls("-")
    assert rig.stands() is BreakerState.OPEN


def test_failures_older_than_the_window_do_not_count() -> None:
    rig = Rig()
    rig.calls("----")
    rig.now_s += WINDOW_S
    rig.calls("-")
    assert rig.stands() is BreakerState.CLOSED


def test_only_a_probe_lets_a_trial_through_and_a_good_trial_closes_it() -> None:
    rig = opened()
    rig.now_s += 3_600
    assert rig.breaker.admit() is None
    rig.probe()
    assert rig.stands() is BreakerState.HALF_OPEN
    trial = rig.breaker.admit()
    assert trial is not None
    assert rig.breaker.admit() is None
    rig.breaker.succeeded(trial, rig.now_s)
    assert rig.stands() is BreakerState.CLOSED
    rig.calls("----")
    assert rig.stands() is BreakerState.CLOSED


def test_a_bad_trial_opens_it_again() -> None:
    rig = opened()
    rig.probe()
    rig.calls("-")
    assert (rig.stands(), rig.breaker.opened_count) == (BreakerState.OPEN, 2)


def test_a_trial_that_tells_nothing_leaves_its_place_to_another() -> None:
    rig = opened()
    rig.probe()
    trial = rig.breaker.admit()
    assert trial is not None
    rig.breaker.unknown(trial)
    assert rig.call(well=True)
    assert rig.stands() is BreakerState.CLOSED


def test_where_no_caller_comes_a_second_probe_closes_it_but_not_one_that_began_before_the_first_was_good() -> None:
    rig = opened()
    early = rig.breaker.probing()
    rig.probe()
    rig.breaker.probed(early, rig.now_s)
    assert rig.stands() is BreakerState.HALF_OPEN
    rig.probe()
    assert rig.stands() is BreakerState.CLOSED


def test_a_probe_does_not_decide_while_a_trial_is_under_way() -> None:
    rig = opened()
    rig.probe()
    trial = rig.breaker.admit()
    assert trial is not None
    rig.probe()
    rig.breaker.failed(trial, rig.now_s, HALF, "no answer")
    assert rig.stands() is BreakerState.OPEN


def test_how_a_call_from_before_the_last_change_of_state_ends_is_passed_over() -> None:
    rig = Rig()
    late = rig.breaker.admit()
    assert late is not None
    rig.calls("-----")
    rig.breaker.succeeded(late, rig.now_s)
    assert rig.stands() is BreakerState.OPEN
    rig.probe()
    rig.breaker.failed(late, rig.now_s, HALF, "no answer")
    assert rig.stands() is BreakerState.HALF_OPEN


STEPS = st.lists(st.sampled_from(["well", "ill", "unknown", "probe", "hang", "end well", "end ill"]), max_size=80)
THRESHOLDS = st.builds(
    Threshold, failure_ratio=st.floats(0.01, 1.0), min_failures=st.integers(min_value=1, max_value=WINDOW_CALLS)
)


@dataclass
class Walk(Rig):
    """A rig with calls that hang, which counts the failures that it told of."""

    threshold: Threshold = HALF
    hanging: list[int] = field(default_factory=list)
    failures: int = 0

    def step(self, step: str) -> None:
        self.now_s += 0.1
        if step == "probe":
            self.probe()
        elif step.startswith("end"):
            if self.hanging:
                self.end(self.hanging.pop(), step.removeprefix("end "))
        elif (ticket := self.breaker.admit()) is not None:
            self.end(ticket, step)

    def end(self, ticket: int, how: str) -> None:
        if how == "hang":
            self.hanging.append(ticket)
        elif how == "unknown":
            self.breaker.unknown(ticket)
        elif how == "well":
            self.breaker.succeeded(ticket, self.now_s)
        else:
            self.breaker.failed(ticket, self.now_s, self.threshold, "no answer")
            self.failures += 1


@given(STEPS, THRESHOLDS)
def test_it_opens_for_failures_alone_and_a_well_backend_always_closes_it(
    steps: list[str], threshold: Threshold
) -> None:
    walk = Walk(threshold=threshold)
    for step in steps:
        before = walk.stands()
        walk.step(step)
        if (before, walk.stands()) == (BreakerState.CLOSED, BreakerState.OPEN):
            assert walk.failures >= threshold.min_failures
            assert step in {"ill", "end ill"}
        assert (before, walk.stands()) != (BreakerState.OPEN, BreakerState.CLOSED)
    for ticket in walk.hanging:
        walk.breaker.unknown(ticket)
    walk.probe()
    walk.call(well=True, threshold=threshold)
    assert walk.stands() is BreakerState.CLOSED
