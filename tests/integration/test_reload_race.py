"""No check is answered by another version than the one its request runs under, however fast policies change."""

from itertools import pairwise

from tests.integration.reload_race import race, versions

CHECKS = 20_000
RELOADS = 30
RELOAD_EVERY_S = 0.02


def test_from_one_version_to_the_next_many_answers_change() -> None:
    known = list(versions().values())
    for earlier, later in pairwise(known):
        changed = sum(earlier.answers[question] != later.answers[question] for question in earlier.answers)
        assert changed > len(earlier.answers) / 5


async def test_reloads_beside_checkers_give_no_wrong_answer_and_no_request_two_versions() -> None:
    count = await race(versions(), RELOAD_EVERY_S, lambda seen: seen.checks >= CHECKS and seen.reloads >= RELOADS)
    assert (count.wrong, count.mixed) == (0, 0)
    assert len(count.versions) > 5
