"""`memplane eval guard`: measures which texts the guard takes for attacks."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import click

from memplane.cli.judging import FILE, failures, judged, judging_options, write_dump
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, pass_session
from memplane.evaluation.guard import read_suspects, report


@click.command(
    "guard",
    epilog="""\b
Examples:
  memplane eval guard --data injection.jsonl --benign turns.jsonl
  memplane eval guard --data injection.jsonl --by kind --without flood --dump scores.jsonl --json

\b
Format, one JSON object a line:
  {"id", "text", "label", "source", "kind"}   label 1: an attack, 0: benign, null: not counted
  {"id", "adv_texts": [text, …]}              poisoned statements, each judged by itself
The dump has id, score (0 to 1, the higher the more suspect), action and signals.""",
)
@judging_options
@report_options
@click.option("--benign", type=FILE, multiple=True, help="Texts that are benign whatever their label; may be repeated.")
@click.option("--by", type=click.Choice(["set", "kind"]), default="set", show_default=True, help="What rows are.")
@click.option("--without", metavar="SIGNAL", multiple=True, help="Let a signal not count; may be repeated.")
@pass_session
def guard_command(
    session: Session,
    /,
    data: tuple[Path, ...],
    dump: Path | None,
    benign: tuple[Path, ...],
    files: ReportFiles,
    **options: object,
) -> None:
    """Judges texts by the default policy and prints the share of attacks caught and of benign texts flagged.

    Nothing is known of the writers here, so bursts and consensus do not count.
    """
    with failures():
        suspects = read_suspects(data, benign)
        begun_s = perf_counter()
        rows = [{"text": each.text} for each in suspects]
        answers = judged(session.out, "guard", rows, {"without": options["without"]})
        taken_s = perf_counter() - begun_s
    write_dump(dump, ({"id": each.id, **answer} for each, answer in zip(suspects, answers, strict=True)))
    found = report(suspects, answers, str(options["by"]))
    spent = {"µs a text, with starting up": round(1_000_000 * taken_s / max(1, len(rows)))}
    publish(session.out, replace(found, about={**found.about, **spent}), files)
