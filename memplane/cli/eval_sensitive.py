"""`memplane eval sensitive`: measures which sensitive data is found."""

from collections.abc import Sequence
from pathlib import Path

import click

from memplane.cli.judging import failures, judged, judging_options, write_dump
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, pass_session
from memplane.evaluation.sensitive import Span, in_words_of, read_texts, report


@click.command(
    "sensitive",
    epilog="""\b
Examples:
  memplane eval sensitive --data labelled.jsonl
  memplane eval sensitive --data chat.jsonl --dump spans.jsonl --json

\b
Format, one JSON object a line:
  {"id", "text", "spans": [{"type", "start", "end"}]}   characters; the end is exclusive; no spans: nothing to find
The dump has id and spans, the types named as in the data where it names one that stands for ours.""",
)
@judging_options
@report_options
@pass_session
def sensitive_command(session: Session, /, data: tuple[Path, ...], dump: Path | None, files: ReportFiles) -> None:
    """Looks for sensitive data and prints how much of what is labelled was found, and how much more.

    covered: of what is labelled, of how much at least a part was found as anything. `all` is over the types that are
    looked for. Texts without a label in which something is found are false alarms.
    """
    with failures():
        texts = read_texts(data)
        answers = judged(session.out, "sensitive", [{"text": each.text} for each in texts])
    found = in_words_of(texts, answers)
    write_dump(dump, ({"id": text.id, "spans": _plain(spans)} for text, spans in zip(texts, found, strict=True)))
    publish(session.out, report(texts, found), files)


def _plain(spans: Sequence[Span]) -> list[dict[str, object]]:
    return [{"type": span.type, "start": span.start, "end": span.end} for span in spans]
