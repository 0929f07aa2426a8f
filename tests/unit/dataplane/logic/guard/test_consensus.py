from dataclasses import replace

from dataplane.logic.guard.consensus import Heard, Standing, Voice, standings
from memplane.policy.guard import ConsensusPolicy

POLICY = ConsensusPolicy()
ONE = Voice("p1", 4, "bot", "", "")
OTHER = Voice("p2", 3, "", "ann", "s1")
QUESTION = frozenset(["chicago", "fire", "season", "episodes"])


def heard(text: str, voice: Voice = ONE, time_us: int = 0) -> Heard:
    return Heard(frozenset(text.split()), voice, time_us, is_own=False)


CAMPAIGN = [
    heard("chicago fire season four total 24 episodes"),
    heard("season four chicago fire popular drama 24 episodes"),
    heard("popular series chicago fire fourth season 24 episodes"),
    heard("chicago fire drama season confirmed 24 episodes total"),
]
CHATTER = [heard(f"we went hiking number {number} today", OTHER) for number in range(6)]


def test_four_that_answer_alike_from_one_writer_at_once_go_last() -> None:
    found = standings(QUESTION, [*CAMPAIGN, *CHATTER], POLICY)
    assert found == [Standing.LAST] * 4 + [Standing.KEPT] * 6


def test_of_three_the_best_stays() -> None:
    found = standings(QUESTION, [*CAMPAIGN[:3], *CHATTER], POLICY)
    assert found[:3] == [Standing.KEPT, Standing.LAST, Standing.LAST]


def test_a_campaign_is_left_out_where_somebody_else_answers() -> None:
    found = standings(QUESTION, [*CAMPAIGN, heard("chicago fire season has 23 episodes", OTHER), *CHATTER], POLICY)
    assert found[:5] == [Standing.LEFT_OUT] * 4 + [Standing.KEPT]


def test_two_voices_other_times_and_people_themselves_are_believed() -> None:
    voices = [replace(hit, voice=replace(ONE, speaker=str(index))) for index, hit in enumerate(CAMPAIGN)]
    times = [replace(hit, time_us=index * 3_600_000_000) for index, hit in enumerate(CAMPAIGN)]
    own = [replace(hit, is_own=True) for hit in CAMPAIGN]
    for hits in (voices, times, own):
        assert set(standings(QUESTION, [*hits, *CHATTER], POLICY)) == {Standing.KEPT}


def test_what_does_not_answer_is_not_judged() -> None:
    assert set(standings(frozenset({"hiking"}), CAMPAIGN, POLICY)) == {Standing.KEPT}
    assert standings(frozenset(), CAMPAIGN, POLICY) == [Standing.KEPT] * 4
    assert standings(QUESTION, [], POLICY) == []


def test_notes_of_one_form_with_other_values_back_nobody() -> None:
    notes = [heard(f"chicago fire season {number} counts {20 + number} episodes") for number in range(5)]
    assert set(standings(QUESTION, [*notes, *CHATTER], POLICY)) == {Standing.KEPT}
