import numpy as np
import pytest

from memplane.evaluation.bootstrap import Auc, Difference, Draw, Ratio, Statistic, compare
from memplane.evaluation.comparable import mean_of
from memplane.evaluation.statements import auc

QUICK = Draw(resamples=1000)


def difference(a: Statistic, b: Statistic, groups: list[str], draw: Draw = QUICK) -> Difference:
    return compare({"x": a}, {"x": b}, groups, draw)["x"]


def rows(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def test_equal_answers_do_not_differ() -> None:
    values = mean_of([0.0, 1.0] * 20)
    assert difference(values, values, rows(40)) == Difference(40, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0)


def test_a_steady_gain_is_sure_and_a_chance_one_is_not() -> None:
    generator = np.random.default_rng(3)
    a = generator.random(200)
    sure = difference(mean_of(list(a)), mean_of(list(a + 0.1)), rows(200))
    assert (round(sure.low, 3), round(sure.high, 3)) == (0.1, 0.1)
    assert sure.p < 0.01
    chance = difference(mean_of(list(a)), mean_of(list(generator.random(200))), rows(200))
    assert chance.low < 0 < chance.high
    assert chance.p > 0.05


def test_the_interval_is_that_of_the_normal_law_for_a_mean() -> None:
    values = np.random.default_rng(5).normal(0.2, 1.0, 400)
    found = difference(mean_of([0.0] * 400), mean_of(list(values)), rows(400), Draw(resamples=4000))
    error = values.std() / 20
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.01)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.01)


def test_one_seed_gives_one_answer() -> None:
    generator = np.random.default_rng(2)
    a, b = mean_of(list(generator.random(30))), mean_of(list(generator.random(30)))
    assert difference(a, b, rows(30)) == difference(a, b, rows(30))
    assert difference(a, b, rows(30)) != difference(a, b, rows(30), Draw(seed=2, resamples=1000))


def test_drawing_groups_is_less_sure_where_groups_are_alike() -> None:
    gains = [0.1] * 20 + [-0.1] * 20 + [0.2] * 20 + [0.0] * 20
    groups = [str(place // 20) for place in range(80)]
    a, b = mean_of([0.0] * 80), mean_of(gains)
    by_row, by_group = difference(a, b, groups), difference(a, b, groups, Draw(by_group=True, resamples=1000))
    assert by_group.high - by_group.low > 2 * (by_row.high - by_row.low)
    assert by_row.difference == by_group.difference


def test_the_area_is_that_of_the_other_formula() -> None:
    generator = np.random.default_rng(1)
    labels = list(generator.random(60) < 0.4)
    scores = [round(float(each), 1) for each in generator.random(60)]  # with ties
    found = Auc(labels, scores).at(np.ones((1, 60)))[0]
    assert found == pytest.approx(auc(list(zip(labels, scores, strict=True))))
    twice = np.ones((1, 60))
    twice[0, :10] = 2
    doubled = [*range(60), *range(10)]
    expected = auc([(labels[place], scores[place]) for place in doubled])
    assert Auc(labels, scores).at(twice)[0] == pytest.approx(expected)


def test_a_figure_of_nothing_is_left_out() -> None:
    nothing = Ratio(np.zeros(3), np.zeros(3))
    assert compare({"x": nothing}, {"x": nothing}, rows(3), QUICK) == {}
