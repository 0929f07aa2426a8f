"""`memplane eval guard`: measures which texts the guard takes for attacks."""

from collections.abc import Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from time import perf_counter

import click

from memplane.cli.judging import FILE, failures, judged, judging_options, write_dump
from memplane.cli.output import Output
from memplane.cli.session import Session, pass_session
from memplane.evaluation.guard import GuardScores, measure, read_suspects

COLUMNS = ("set", "attacks", "recall", "benign", "false positives")


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
    scores = measure(suspects, [answer["action"] for answer in answers], str(options["by"]))
    if session.as_json:
        session.out.json({name: asdict(figures) for name, figures in scores.items()})
    else:
        _show(session.out, scores, 1_000_000 * taken_s / max(1, len(rows)))


def _show(out: Output, scores: Mapping[str, GuardScores], us: float) -> None:
    out.table(COLUMNS, [(name, *astuple(figures)) for name, figures in scores.items()])
    out.line(f"{us:.0f} µs a text, with starting up")
