from dataclasses import replace

from dataplane.logic.explain import explain
from dataplane.logic.profiles.signals import Signals
from dataplane.logic.profiles.table import formula_of
from dataplane.logic.rank import Ranked
from dataplane.model import DAY_US
from memplane.policy.retrieve import RetrievePolicy, Weights
from tests.unit.dataplane.logic.examples import a_candidate


def ranked(age_us: int | None, uses: int = 0, *, text: float = 0.0, task_alignment: float = 0.0) -> Ranked:
    signals = Signals(0.87, text, 0.9, 1.0, 0.9, task_alignment, 1.0)
    return Ranked(a_candidate(uses, category="billing"), 0.8, 0.8, signals, age_us)


def test_a_hit_is_told_in_words() -> None:
    told = explain(ranked(3 * DAY_US + 5, 3), Weights(), RetrievePolicy())
    assert told == "relevance 0.87, said 3 days ago, recalled 3 times in 30 days, source USER"


def test_one_is_singular_and_none_is_said() -> None:
    assert "said 1 day ago, recalled 1 time in 7 days" in explain(
        ranked(DAY_US, 1), Weights(), RetrievePolicy(frequency_window_days=7)
    )
    assert "not recalled in 30 days" in explain(ranked(DAY_US), Weights(), RetrievePolicy())


def test_the_words_that_a_memory_holds_are_named() -> None:
    few = replace(ranked(0), words=("pump", "精排"))
    assert "relevance 0.87, holds the words pump 精排, said" in explain(few, Weights(), RetrievePolicy())
    many = replace(few, words=tuple(f"w{number}" for number in range(13)))
    assert "w8 w9 and 3 more, said" in explain(many, Weights(), RetrievePolicy())


def test_ages_of_every_size_are_told() -> None:
    assert "at an unknown time" in explain(ranked(None), Weights(), RetrievePolicy())
    assert "for a time to come" in explain(ranked(-1), Weights(), RetrievePolicy())
    assert "within the last hour" in explain(ranked(0), Weights(), RetrievePolicy())
    assert "said 2 hours ago" in explain(ranked(DAY_US // 12), Weights(), RetrievePolicy())


def test_text_and_task_are_told_where_they_count() -> None:
    told = explain(ranked(0, text=0.5, task_alignment=1.0), Weights(task_alignment=0.1), RetrievePolicy())
    assert "text match 0.50" in told
    assert "category billing fits the task" in told


def test_what_was_told_in_the_time_asked_about_says_so() -> None:
    hit = ranked(0)
    assert "asked about" not in explain(hit, Weights(), RetrievePolicy())
    within, near = (replace(hit, signals=replace(hit.signals, asked_time=value)) for value in (1.0, 0.37))
    assert "said within the last hour, in the time asked about, not" in explain(within, Weights(), RetrievePolicy())
    assert "nearness to the time asked about 0.37" in explain(near, Weights(), RetrievePolicy())


def test_a_profile_tells_what_each_part_counts() -> None:
    balanced = RetrievePolicy(profile="balanced")
    told = explain(ranked(3 * DAY_US, 3), formula_of(balanced).weights, balanced)
    assert told == (
        "relevance 0.87, said 3 days ago counts 0.90, recalled 3 times in 30 days counts 1.00, source USER counts 0.90"
    )
    orchestrated = RetrievePolicy(profile="orchestrated")
    told = explain(ranked(3 * DAY_US, task_alignment=1.0), formula_of(orchestrated).weights, orchestrated)
    assert told == (
        "relevance 0.87, said 3 days ago counts 0.90, not recalled in 30 days, source USER counts 0.90, "
        "category billing fits the task"
    )


def test_a_companion_tells_when_it_was_last_used_and_how_often() -> None:
    companion = RetrievePolicy(profile="companion")
    weights = formula_of(companion).weights
    assert explain(ranked(3 * DAY_US), weights, companion) == (
        "similarity 0.87, never used, said 3 days ago counts 0.90, not recalled in 30 days, source USER counts 0.90"
    )
    candidate = a_candidate(3, category="billing", access_count=7)
    signals = Signals(0.87, 0.0, 0.89, 1.0, 0.9, 0.0, 1.0, boost=1.2079)
    used = Ranked(candidate, 0.84, 0.84, signals, 90 * DAY_US, idle_us=12 * DAY_US)
    assert explain(used, weights, companion) == (
        "similarity 0.87, last used 12 days ago counts 0.89, recalled 3 times in 30 days, 7 times in all counts 1.21, "
        "source USER counts 0.90"
    )


def test_what_moved_its_relevance_beyond_its_words_is_told() -> None:
    hit = ranked(0)
    beside = replace(hit, signals=replace(hit.signals, beside=0.31))
    assert "relevance 0.87, beside turns that answer 0.31, said" in explain(beside, Weights(), RetrievePolicy())
    named = replace(hit, said_by="Caroline", signals=replace(hit.signals, odds=2.0))
    told = explain(named, Weights(), RetrievePolicy())
    assert "said by Caroline, who is asked about (odds × 2)" in told
    asking = replace(hit, signals=replace(hit.signals, odds=0.7))
    assert "itself a question (odds × 0.7)" in explain(asking, Weights(), RetrievePolicy(profile="companion"))
