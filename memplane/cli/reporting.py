"""How every command of `memplane eval` says what it found: tables or JSON on stdout, Markdown and HTML into files."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from memplane.cli.output import Output
from memplane.evaluation.report.html import html
from memplane.evaluation.report.markdown import markdown
from memplane.evaluation.report.model import Report, shown

FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class ReportFiles:
    """Where a report is written besides; None: nowhere."""

    markdown: Path | None = None
    html: Path | None = None


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--markdown` and `--html`; the command gets both as one argument, `files`."""

    @wraps(command)
    def collected(*arguments: Any, markdown: Path | None, html: Path | None, **options: Any) -> Any:
        return command(*arguments, files=ReportFiles(markdown, html), **options)

    with_html = click.option("--html", type=FILE, help="Write a report here, as one page with charts.")(collected)
    return click.option("--markdown", type=FILE, help="Write a report here, as Markdown.")(with_html)


def publish(out: Output, report: Report, files: ReportFiles) -> None:
    """Prints the report, its `data` where JSON is wanted, and writes the files that were named."""
    if files.markdown is not None:
        files.markdown.write_text(markdown(report), encoding="utf-8")
    if files.html is not None:
        files.html.write_text(html(report), encoding="utf-8")
    if out.as_json:
        out.json(report.data)
        return
    for table in report.tables:
        out.table(table.columns, [["–" if cell is None else cell for cell in row] for row in table.rows], table.title)
        if table.note:
            out.line(table.note, "dim")
    for name, value in report.about.items():
        out.line(f"{name}: {shown(value)}")
