import pytest

from dataplane.logic.neighbours import FADE, lifted, supports
from dataplane.model import Memory
from memplane.policy.retrieve import Neighbours
from tests.unit.dataplane.logic.examples import a_memory

POLICY = Neighbours(use="signal")


def turns(*sequences: int, session_id: str = "s1") -> list[Memory]:
    return [a_memory(memory_id=f"mem_{n}", session_id=session_id, sequence=n) for n in sequences]


def test_a_reply_is_supported_by_the_turn_before_it_and_that_by_the_reply() -> None:
    assert supports(turns(1, 2), [0.5, 0.0], POLICY) == pytest.approx([0.0, 0.6 * 0.5])
    assert supports(turns(1, 2), [0.0, 0.5], POLICY) == pytest.approx([0.4 * 0.5, 0.0])


def test_farther_turns_count_less_and_beyond_the_reach_not_at_all() -> None:
    found = supports(turns(1, 2, 3, 4), [0.0, 0.0, 0.0, 1.0], POLICY)
    assert found == pytest.approx([0.0, 0.4 * FADE, 0.4, 0.0])
    assert supports(turns(1, 2, 3, 4), [0.0, 0.0, 0.0, 1.0], Neighbours(use="signal", reach=3))[0] > 0


def test_places_go_by_sequence_then_time_then_id_however_they_are_given() -> None:
    given = [a_memory(memory_id=name, session_id="s", create_time_us=time_us) for name, time_us in
             (("c", 1), ("a", 3), ("b", 3))]  # fmt: skip
    assert supports(given, [0.0, 0.0, 1.0], Neighbours(use="signal", reach=1)) == pytest.approx([0.0, 0.4, 0.0])


@pytest.mark.parametrize(
    "others",
    [turns(1, session_id="s2"), turns(1, session_id=""), [a_memory(session_id="s1", sequence=1, namespace="dept.hr")]],
)
def test_another_session_or_namespace_says_nothing(others: list[Memory]) -> None:
    given = [*others, *turns(2, session_id=others[0].session_id if not others[0].session_id else "s1")]
    assert supports(given, [1.0, 0.0], POLICY) == [0.0, 0.0]


def test_switched_off_nothing_is_said() -> None:
    assert supports(turns(1, 2), [1.0, 1.0], Neighbours(use="off")) == [0.0, 0.0]


def test_support_is_at_most_one_and_a_lift_never_lowers() -> None:
    assert max(supports(turns(1, 2, 3, 4, 5), [1.0] * 5, Neighbours(use="signal", before=1.0, after=1.0))) == 1.0
    assert lifted(0.4, 0.0) == pytest.approx(0.4)
    assert lifted(0.4, 0.5) == pytest.approx(0.7)
    assert lifted(0.4, 1.0) == 1.0
