"""`memplane eval dates`: measures how time expressions are resolved."""

from pathlib import Path

import click

from memplane.cli.judging import failures, judged, judging_options, write_dump
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, pass_session
from memplane.evaluation.dates import days_of, read_expressions, report


@click.command(
    "dates",
    epilog="""\b
Examples:
  memplane eval dates --data expressions.jsonl
  memplane eval dates --data expressions.jsonl --dump ranges.jsonl --json

\b
Format, one JSON object a line:
  {"now", "text", "start", "end"}   ISO 8601; start and end are null where the text names no time
The dump has the same fields, with the ranges that were found.""",
)
@judging_options
@report_options
@pass_session
def dates_command(session: Session, /, data: tuple[Path, ...], dump: Path | None, files: ReportFiles) -> None:
    """Resolves time expressions and prints the share with exactly the right days.

    precision: of the ranges found, those that are right; recall: of those to be found; quiet: of the texts without a
    time, those in which none was found.
    """
    with failures():
        expressions = read_expressions(data)
        rows = [{"now": each.now, "text": each.text} for each in expressions]
        answers = judged(session.out, "dates", rows)
    write_dump(dump, ({**row, **answer} for row, answer in zip(rows, answers, strict=True)))
    publish(session.out, report(expressions, [days_of(answer) for answer in answers]), files)
