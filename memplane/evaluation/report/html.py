"""A report as one HTML page that stands alone: its style and charts are in it, it loads nothing and runs no script.

Every text is escaped, and a content security policy forbids whatever should slip through.
"""

from collections.abc import Iterator, Sequence
from html import escape

from memplane.evaluation.report.charts import bars, intervals
from memplane.evaluation.report.model import Case, Item, Report, Table, Value, shown

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5d6b7c;--line:#d9dfe6;--page:#fff;--c0:#2f6fb0;--c1:#d9822b;
--c2:#4c9a63;--c3:#8a63ad;--c4:#8d8d3a;--right:#2c7a45;--wrong:#a8432f}
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ee;--dim:#9aa7b5;--line:#3a4450;--page:#161b21;--c0:#6aa7e0;
--c1:#e8a35c;--c2:#7cc492;--c3:#b696d4;--c4:#cfcf7c;--right:#7cc492;--wrong:#e58b78}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:960px;margin:2em auto;
padding:0 1em}
table{border-collapse:collapse;margin:.5em 0 1em}td,th{padding:.2em .7em;border-bottom:1px solid var(--line);
text-align:left}.number{text-align:right;font-variant-numeric:tabular-nums}
svg{max-width:100%;height:auto;font-size:12px}svg text{fill:var(--ink)}svg .mark{fill:var(--dim);font-size:11px}
.grid{stroke:var(--line)}.zero{stroke:var(--wrong);stroke-dasharray:3 3}.range{stroke:var(--dim);stroke-width:2}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}
.right{color:var(--right)}.wrong{color:var(--wrong)}.dim,dt{color:var(--dim)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1em}dd{margin:0}
details{border-bottom:1px solid var(--line);padding:.3em 0}summary{cursor:pointer}
""".strip()
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)


def html(report: Report) -> str:
    """The whole page."""
    return "".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    title = escape(report.title)
    yield f"{_HEAD}<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1><dl>"
    yield from (f"<dt>{escape(name)}</dt><dd>{escape(shown(value))}</dd>" for name, value in report.about.items())
    yield "</dl>"
    for table in report.tables:
        yield from _section(table)
    if report.worst:
        yield "<h2>What went worst</h2>"
        yield from (_case(case) for case in report.worst)
    yield "</body></html>"


def _section(table: Table) -> Iterator[str]:
    yield f"<h2>{escape(table.title)}</h2>"
    if table.note:
        yield f'<p class="dim">{escape(table.note)}</p>'
    if table.rows and table.charted:
        yield _chart(table)
    numeric = [all(_is_number(row[place]) for row in table.rows) for place in range(len(table.columns))]
    yield f"<table><thead>{_row('th', table.columns, numeric)}</thead><tbody>"
    yield from (_row("td", row, numeric) for row in table.rows)
    yield "</tbody></table>"


def _chart(table: Table) -> str:
    labels = [str(row[0]) for row in table.rows]
    if table.chart == "bars":
        return bars(
            table.title, labels, {name: [_number(cell) for cell in table.column(name)] for name in table.charted}
        )
    columns = [table.column(name) for name in ("difference", "low", "high")]
    cells = [tuple(_number(cell) for cell in row) for row in zip(*columns, strict=True)]
    return intervals(
        table.title,
        [
            (label, value, low, high)
            for label, (value, low, high) in zip(labels, cells, strict=True)
            if value is not None and low is not None and high is not None
        ],
    )


def _row(tag: str, cells: Sequence[Value], numeric: Sequence[bool]) -> str:
    kinds = (' class="number"' if right else "" for right in numeric)
    inside = (f"<{tag}{kind}>{escape(shown(cell))}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
    return f"<tr>{''.join(inside)}</tr>"


def _case(case: Case) -> str:
    facts = ", ".join(f"{name} {shown(value)}" for name, value in case.facts.items())
    lists = "".join(
        f'<p class="dim">{name}</p><ol>{"".join(_item(item) for item in items)}</ol>'
        for name, items in (("expected", case.expected), ("got", case.got))
        if items
    )
    return f'<details><summary>{escape(case.text)} <span class="dim">{escape(facts)}</span></summary>{lists}</details>'


def _item(item: Item) -> str:
    kind, sign = ("right", "✓") if item.right else ("wrong", "✗")
    note = f' <span class="dim">{escape(item.note)}</span>' if item.note else ""
    return f'<li><span class="{kind}">{sign}</span> {escape(item.text)}{note}</li>'


def _is_number(cell: Value) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def _number(cell: Value) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
