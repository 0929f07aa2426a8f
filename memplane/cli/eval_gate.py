"""`memplane eval gate`: measures what the write gate keeps of labelled texts."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import click

from memplane.cli.judging import failures, judged, judging_options, write_dump
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, pass_session
from memplane.evaluation.gate import read_gate_texts, report


@click.command(
    "gate",
    epilog="""\b
Examples:
  memplane eval gate --data turns.jsonl
  memplane eval gate --data turns.jsonl --dump scores.jsonl --json

\b
Format, one JSON object a line:
  {"id", "text", "label", "n_qa"}    label 1: worth keeping, 0: junk; n_qa: later questions that need it, may be absent
  {"id", "text", "label", "worth"}   label a word for the sort of text, worth 1 or 0
The dump has {"id", "score", "layer"}; layer null: refused.""",
)
@judging_options
@report_options
@pass_session
def gate_command(session: Session, /, data: tuple[Path, ...], dump: Path | None, files: ReportFiles) -> None:
    """Admits texts as turns of a session, by the default policy with the model and embedder that ship.

    f1_kept counts SHORT_TERM and above as kept, f1_half a score of 0.5 and above. junk_lasting: of the junk, what is in
    the long-term layer; worth_kept and needed_kept: of what is worth keeping, or needed by later questions, what is in
    the short- or long-term layer.
    """
    with failures():
        texts = read_gate_texts(data)
        begun_s = perf_counter()
        answers = judged(session.out, "gate", [{"text": each.text} for each in texts])
        taken_s = perf_counter() - begun_s
    write_dump(dump, ({"id": each.id, **answer} for each, answer in zip(texts, answers, strict=True)))
    found = report(texts, answers)
    spent = {"ms a text, with starting up": 1000 * taken_s / max(1, len(texts))}
    publish(session.out, replace(found, about={**found.about, **spent}), files)
