from dataclasses import replace
from math import exp

import pytest

from dataplane.logic.intent import Intent
from dataplane.logic.rank import Ranked, Ranking, RankInput, rank
from dataplane.model import DAY_US, Kind, SourceType
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import Freshness, RetrievePolicy, Weights
from tests.unit.dataplane.logic.examples import a_candidate

NOW_US = 1_800_000_000_000_000


def ranking(
    weights: Weights | None = None,
    *,
    intent: Intent | None = None,
    task_type: str = "",
    freshness: Freshness | None = None,
) -> Ranking:
    policy = RetrievePolicy(weights=weights or Weights(), freshness=freshness or Freshness())
    return Ranking(policy, DecayPolicy(), Credibility(), NOW_US, intent or Intent(), task_type)


def item(
    memory_id: str = "mem_1",
    similarity: float | None = 0.5,
    text: float | None = None,
    *,
    uses: int = 0,
    **fields: object,
) -> RankInput:
    fields.setdefault("create_time_us", NOW_US)
    return RankInput(a_candidate(uses, memory_id=memory_id, **fields), similarity, text)


def ids(ranked: list[Ranked]) -> list[str]:
    return [one.candidate.memory.memory_id for one in ranked]


def test_the_score_is_the_weighted_sum_of_the_signals() -> None:
    [hit] = rank([item(similarity=0.8, uses=3, source_type=SourceType.AGENT)], ranking())
    assert hit.score == pytest.approx(0.6 * 0.8 + 0.2 * 1.0 + 0.1 * 1.0 + 0.1 * 0.7)
    assert hit.confidence == hit.score


def test_weights_are_normalised_to_a_sum_of_one() -> None:
    [hit] = rank([item(similarity=1.0)], ranking(Weights(vector=3.0, freshness=1.0, frequency=0.0, credibility=0.0)))
    assert hit.score == pytest.approx(1.0)


def test_freshness_falls_with_the_event_time_by_kind_and_category() -> None:
    freshness = Freshness(time_constant_days=30, by_kind={"EPISODE": 10}, by_category={"sales_data": 1 / 24})
    old = NOW_US - 10 * DAY_US
    cases = {
        30: item(event_time_us=old),
        10: item(event_time_us=old, kind=Kind.EPISODE),
        1 / 24: item(event_time_us=old, kind=Kind.EPISODE, category="sales_data"),
    }
    for constant_days, one in cases.items():
        [hit] = rank([one], ranking(freshness=freshness))
        assert hit.signals.freshness == pytest.approx(exp(-10 / constant_days))


def test_an_unknown_time_is_neutral_and_a_future_one_fresh() -> None:
    [unknown] = rank([item(create_time_us=0)], ranking())
    [future] = rank([item(event_time_us=NOW_US + DAY_US)], ranking())
    assert (unknown.signals.freshness, unknown.age_us) == (0.5, None)
    assert future.signals.freshness == 1.0


def test_frequency_is_relative_to_the_most_used() -> None:
    first, second = rank([item("mem_a", uses=7), item("mem_b", uses=1)], ranking())
    assert first.signals.frequency == 1.0
    assert second.signals.frequency == pytest.approx(1 / 3)
    assert rank([item(uses=0)], ranking())[0].signals.frequency == 0.0


def test_a_category_that_is_the_task_type_aligns_in_any_case() -> None:
    weights = Weights(vector=0.5, task_alignment=0.5, freshness=0.0, frequency=0.0, credibility=0.0)
    ranked = rank([item("mem_a", 0.9), item("mem_b", 0.8, category="Billing")], ranking(weights, task_type="billing"))
    assert ids(ranked) == ["mem_b", "mem_a"]
    assert rank([item(category="")], ranking(weights))[0].signals.task_alignment == 0.0


def held(one: RankInput, count: int = 1) -> RankInput:
    return replace(one, identifiers_held=count)


def test_identifier_queries_are_ranked_by_text() -> None:
    items = [item("mem_a", 0.9, 0.1), item("mem_b", 0.5, 1.0)]
    assert ids(rank(items, ranking())) == ["mem_a", "mem_b"]
    items = [held(one) for one in items]
    assert ids(rank(items, ranking(intent=Intent(("inv-1",))))) == ["mem_b", "mem_a"]


def test_neither_use_nor_freshness_outvotes_a_held_identifier() -> None:
    weights = Weights(vector=0.1, text=0.1, freshness=0.4, frequency=0.4, credibility=0.0)
    exact = held(item("mem_exact", 0.5, 1.0, event_time_us=NOW_US - 900 * DAY_US))
    sibling = item("mem_sibling", 0.9, 0.7, uses=100, event_time_us=NOW_US)
    assert ids(rank([sibling, exact], ranking(weights))) == ["mem_exact", "mem_sibling"]


def test_more_of_the_identifiers_come_before_fewer() -> None:
    items = [item("mem_none", 0.9), held(item("mem_one", 0.8), 1), held(item("mem_both", 0.1), 2)]
    ranked = rank(items, ranking(intent=Intent(("inv-1", "inv-2"))))
    assert ids(ranked) == ["mem_both", "mem_one", "mem_none"]


def test_the_latest_of_an_identifier_is_the_newest_that_holds_it() -> None:
    items = [
        held(item("mem_old", 0.9, 1.0, event_time_us=NOW_US - 9 * DAY_US)),
        held(item("mem_new", 0.9, 0.98, event_time_us=NOW_US - 2 * DAY_US)),
        item("mem_other", 0.9, 1.0, event_time_us=NOW_US),
    ]
    wanted = Intent(("inv-1",), wants_recent=True)
    assert ids(rank(items, ranking(intent=wanted))) == ["mem_new", "mem_old", "mem_other"]


def test_an_identifier_that_no_text_holds_leaves_the_vector_its_weight() -> None:
    items = [item("mem_a", 0.5, 1.0), item("mem_b", 0.9, 0.2)]
    assert ids(rank(items, ranking(intent=Intent(("inv-1",))))) == ["mem_b", "mem_a"]


def test_text_ranks_when_no_candidate_has_a_similarity() -> None:
    assert ids(rank([item("mem_a", None, 0.2), item("mem_b", None, 1.0)], ranking())) == ["mem_b", "mem_a"]


def test_one_candidate_without_a_similarity_counts_it_as_zero() -> None:
    assert ids(rank([item("mem_a", None, 1.0), item("mem_b", 0.3)], ranking())) == ["mem_b", "mem_a"]


def test_ties_are_in_order_of_id() -> None:
    assert ids(rank([item("mem_b"), item("mem_a")], ranking())) == ["mem_a", "mem_b"]


def test_the_latest_is_asked_for_among_equals_in_relevance_only() -> None:
    items = [
        item("mem_old", 0.90, event_time_us=NOW_US - 100 * DAY_US),
        item("mem_new", 0.85, event_time_us=NOW_US - 90 * DAY_US),
        item("mem_off_topic", 0.20, event_time_us=NOW_US, uses=50),
    ]
    assert ids(rank(items, ranking(intent=Intent((), wants_recent=True)))) == ["mem_new", "mem_old", "mem_off_topic"]


def test_strength_is_shown_as_read_at_the_reference_time() -> None:
    [hit] = rank([item(strength=1.0, strength_time_us=NOW_US - 60 * DAY_US)], ranking())
    assert hit.signals.strength == pytest.approx(0.8)


def test_nothing_ranks_to_nothing() -> None:
    assert rank([], ranking(intent=Intent((), wants_recent=True))) == []


def test_a_memory_that_says_just_what_is_asked_comes_before_much_used_ones_like_it() -> None:
    used = item("mem_1", 0.9, uses=100)
    same = replace(item("mem_2", 0.9), says_query=True)
    assert ids(rank([used, same], ranking())) == ["mem_2", "mem_1"]
