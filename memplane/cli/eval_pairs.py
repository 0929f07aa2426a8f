"""`memplane eval pairs`: measures how repeats and contradictions are told apart."""

from pathlib import Path

import click

from memplane.cli.judging import failures, judged, judging_options, write_dump
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, pass_session
from memplane.evaluation.statements import read_statement_pairs, report


@click.command(
    "pairs",
    epilog="""\b
Examples:
  memplane eval pairs --data pairs.jsonl
  memplane eval pairs --data pairs.jsonl --dump scores.jsonl --json

\b
Format, one JSON object a line:
  {"id", "a", "b", "relation"}               duplicate, conflict, or another word for neither
  {"id", "a", "b", "label"}                  1: the same, 0: not
  {"id", "premise", "hypothesis", "label"}   contradiction, or another word
The dump has {"id", "duplicate", "conflict"}, scores of 0 to 1.""",
)
@judging_options
@report_options
@pass_session
def pairs_command(session: Session, /, data: tuple[Path, ...], dump: Path | None, files: ReportFiles) -> None:
    """Scores pairs of statements as repeats and as contradictions, with the model and embedder that ship.

    From 0.5 on a pair counts as one. conflicts_merged: of the contradictions, those taken for repeats;
    others_as_conflicts: of the pairs that are neither, those taken for contradictions.
    """
    with failures():
        pairs = read_statement_pairs(data)
        answers = judged(session.out, "pairs", [{"a": pair.a, "b": pair.b} for pair in pairs])
    write_dump(dump, ({"id": pair.pair_id, **answer} for pair, answer in zip(pairs, answers, strict=True)))
    publish(session.out, report(pairs, answers), files)
