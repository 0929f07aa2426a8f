import re
from xml.etree import ElementTree

from memplane.evaluation.report.charts import bars, intervals


def widths(svg: str) -> list[float]:
    return [
        float(width) for width in re.findall(r'<rect class="c\d" x="200" y="[\d.]+" width="([\d.]+)" height="12"', svg)
    ]


def test_bars_are_as_long_as_their_values_and_missing_ones_are_left_out() -> None:
    svg = bars("t", ["a & b", "c"], {"x": [0.5, None], "y": [1.0, 0.25]})
    ElementTree.fromstring(svg)
    assert widths(svg) == [240, 480, 120]


def test_the_scale_grows_with_the_largest_value() -> None:
    assert widths(bars("t", ["a", "b"], {"x": [2.0, 4.0]})) == [240, 480]


def test_an_interval_spans_low_to_high_and_0_is_in_view() -> None:
    svg = intervals("t", [("<a>", 0.2, 0.1, 0.3)])
    ElementTree.fromstring(svg)
    found = re.search(r'class="range" x1="([\d.]+)" x2="([\d.]+)"', svg)
    zero = re.search(r'class="zero" x1="([\d.]+)"', svg)
    assert found
    assert zero
    assert 200 < float(zero[1]) < float(found[1]) < float(found[2]) < 680
