"""Charts as inline SVG: no script, no outside resource, colours from the page's style, every text escaped."""

import math
from collections.abc import Mapping, Sequence
from html import escape

LABEL_WIDTH = 200
PLOT_WIDTH = 480
VALUE_WIDTH = 60
BAR_HEIGHT = 14
GAP = 8
AXIS_HEIGHT = 22
LEGEND_HEIGHT = 22
LABEL_CHARS = 30
SERIES_COLOURS = 5
"""The style names so many colours, `c0` and on; further series begin again."""


def bars(title: str, labels: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """Horizontal bars from 0, those of one label together. The scale ends at 1, or beyond it at the largest value.

    `series` has a value for each label; None: no bar.
    """
    step = BAR_HEIGHT * len(series) + GAP
    top = LEGEND_HEIGHT if len(series) > 1 else 0
    largest = max((value for values in series.values() for value in values if value is not None), default=0.0)
    scale = PLOT_WIDTH / (1.0 if largest <= 1 else largest)
    drawn = [*_legend(list(series))] if top else []
    for place, label in enumerate(labels):
        y = top + place * step
        drawn.append(_label(label, y + (step - GAP) / 2))
        for number, values in enumerate(series.values()):
            drawn.append(_bar(values[place], y + number * BAR_HEIGHT, scale, number))
    bottom = top + len(labels) * step
    ends = (0.0, PLOT_WIDTH / scale)
    return _svg(title, bottom + AXIS_HEIGHT, [*_axis(ends, top, bottom), *drawn])


def intervals(title: str, rows: Sequence[tuple[str, float, float, float]]) -> str:
    """A line from low to high and a dot at the value of each (label, value, low, high), with a rule at 0."""
    low, high = min([0.0, *(row[2] for row in rows)]), max([0.0, *(row[3] for row in rows)])
    margin = (high - low) * 0.05 or 0.01
    ends = (low - margin, high + margin)
    step = BAR_HEIGHT + GAP
    drawn = [_rule(_x(0.0, ends), 0, len(rows) * step)]
    for place, (label, value, start, end) in enumerate(rows):
        y = place * step + step / 2
        drawn += [
            _label(label, y),
            f'<line class="range" x1="{_x(start, ends):.1f}" x2="{_x(end, ends):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<circle class="c0" cx="{_x(value, ends):.1f}" cy="{y:.1f}" r="4"/>',
            _value(f"{value:+.3f}", LABEL_WIDTH + PLOT_WIDTH + 6, y),
        ]
    bottom = len(rows) * step
    return _svg(title, bottom + AXIS_HEIGHT, [*_axis(ends, 0, bottom), *drawn])


def _bar(value: float | None, y: float, scale: float, number: int) -> str:
    if value is None or not math.isfinite(value):
        return ""
    width = max(0.0, value) * scale
    rectangle = (
        f'<rect class="c{number % SERIES_COLOURS}" x="{LABEL_WIDTH}" y="{y + 1:.1f}" width="{width:.1f}" '
        f'height="{BAR_HEIGHT - 2}"/>'
    )
    return rectangle + _value(f"{value:.3f}", LABEL_WIDTH + width + 4, y + BAR_HEIGHT / 2)


def _x(value: float, ends: tuple[float, float]) -> float:
    return LABEL_WIDTH + PLOT_WIDTH * (value - ends[0]) / (ends[1] - ends[0])


def _axis(ends: tuple[float, float], top: float, bottom: float) -> list[str]:
    places = [ends[0] + (ends[1] - ends[0]) * quarter / 4 for quarter in range(5)]
    lines = [
        f'<line class="grid" x1="{_x(at, ends):.1f}" x2="{_x(at, ends):.1f}" y1="{top}" y2="{bottom:.1f}"/>'
        for at in places
    ]
    marks = [
        f'<text class="mark" x="{_x(at, ends):.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{at:.2f}</text>'
        for at in places
    ]
    return [*lines, *marks]


def _rule(x: float, top: float, bottom: float) -> str:
    return f'<line class="zero" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom:.1f}"/>'


def _legend(names: Sequence[str]) -> list[str]:
    width = PLOT_WIDTH / len(names)
    found = []
    for number, name in enumerate(names):
        x = LABEL_WIDTH + number * width
        found.append(f'<rect class="c{number % SERIES_COLOURS}" x="{x:.1f}" y="4" width="10" height="10"/>')
        found.append(f'<text x="{x + 14:.1f}" y="13">{escape(_short(name, int(width / 7)))}</text>')
    return found


def _label(text: str, y: float) -> str:
    place = f'x="{LABEL_WIDTH - 8}" y="{y:.1f}" text-anchor="end" dominant-baseline="middle"'
    return f"<text {place}>{escape(_short(text, LABEL_CHARS))}<title>{escape(text)}</title></text>"


def _value(text: str, x: float, y: float) -> str:
    return f'<text class="mark" x="{x:.1f}" y="{y:.1f}" dominant-baseline="middle">{escape(text)}</text>'


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    width = LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH
    name = escape(title, quote=True)
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" role="img" '
        f'aria-label="{name}"><title>{name}</title>{"".join(parts)}</svg>'
    )
