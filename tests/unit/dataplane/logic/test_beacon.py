"""What beacons tell, as pure comparison."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.beacon import ERAS, MARKS, Beacon, following, has_lost, is_ahead

MARK = st.integers(0, MARKS - 1)
PARTS = st.builds(Beacon, st.integers(0, ERAS - 1), st.integers(1, 2**30 - 1), MARK)


def number(era: int, counter: int, mark: int = 7) -> int:
    return Beacon(era, counter, mark).number


@given(PARTS)
def test_a_beacon_is_told_whole_by_62_bits(beacon: Beacon) -> None:
    assert Beacon.of(beacon.number) == beacon
    assert 0 < beacon.number < 2**62


@pytest.mark.parametrize("parts", [(ERAS, 1, 0), (0, 2**30, 0), (0, 1, MARKS), (-1, 1, 0)])
def test_parts_that_do_not_fit_are_refused(parts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit its bits"):
        Beacon(*parts)


@given(PARTS, MARK)
def test_a_following_beacon_counts_on_in_its_era(beacon: Beacon, mark: int) -> None:
    if beacon.counter < 2**30 - 1:
        assert Beacon.of(following(beacon.number, beacon.era, mark)) == Beacon(beacon.era, beacon.counter + 1, mark)


def test_a_new_era_counts_from_one() -> None:
    assert following(0, 0, 5) == number(0, 1, 5)
    assert following(number(0, 900), 1, 5) == number(1, 1, 5)


@given(st.lists(MARK, min_size=1, max_size=20), st.data())
def test_what_a_record_store_wrote_first_is_never_ahead_of_it(marks: list[int], data: st.DataObject) -> None:
    written = [0]
    for mark in marks:
        written.append(following(written[-1], 3, mark))
    seen = data.draw(st.sampled_from(written))
    later = data.draw(st.sampled_from(written[written.index(seen) :]))
    assert not is_ahead(seen, later, 3)
    assert is_ahead(later, seen, 3) == (later != seen)


@pytest.mark.parametrize(
    ("seen", "stored", "era", "ahead"),
    [
        (number(0, 5), number(0, 4), 0, True),
        (number(0, 5), 0, 0, True),
        (number(0, 5, mark=1), number(0, 5, mark=2), 0, True),
        (number(0, 5, mark=1), number(0, 6, mark=2), 0, False),
        (number(0, 5), number(0, 4), 1, False),
        (number(2, 1), number(1, 9), 1, True),
        (0, 0, 0, False),
        (0, number(0, 5), 0, False),
    ],
)
def test_a_later_or_another_past_is_ahead_unless_it_was_accepted(
    seen: int, stored: int, era: int, *, ahead: bool
) -> None:
    assert is_ahead(seen, stored, era) is ahead


@pytest.mark.parametrize(
    ("held", "acknowledged", "era", "lost"),
    [
        (0, 0, 0, False),
        (number(0, 5), 0, 0, False),
        (0, number(0, 5), 0, True),
        (number(0, 4), number(0, 5), 0, True),
        (number(0, 5, mark=1), number(0, 5, mark=2), 0, True),
        (number(0, 5), number(0, 5), 0, False),
        (number(0, 6), number(0, 5), 0, False),
        (number(0, 5), number(0, 5), 1, True),
    ],
)
def test_an_index_has_lost_what_it_acknowledged_and_does_not_hold(
    held: int, acknowledged: int, era: int, *, lost: bool
) -> None:
    assert has_lost(held, acknowledged, era) is lost
