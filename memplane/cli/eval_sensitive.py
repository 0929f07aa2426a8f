"""`memplane eval sensitive`: measures which sensitive data is found."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from memplane.cli.judging import failures, judged, judging_options, write_dump
from memplane.cli.session import Session, pass_session
from memplane.evaluation.sensitive import Measured, Span, in_words_of, measure, read_texts

COLUMNS = ("type", "labelled", "found", "recall", "precision", "covered")


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
@pass_session
def sensitive_command(session: Session, /, data: tuple[Path, ...], dump: Path | None) -> None:
    """Looks for sensitive data and prints how much of what is labelled was found, and how much more.

    covered: of what is labelled, of how much at least a part was found as anything. `all` is over the types that are
    looked for. Texts without a label in which something is found are false alarms.
    """
    with failures():
        texts = read_texts(data)
        answers = judged(session.out, "sensitive", [{"text": each.text} for each in texts])
    found = in_words_of(texts, answers)
    write_dump(dump, ({"id": text.id, "spans": _plain(spans)} for text, spans in zip(texts, found, strict=True)))
    result = measure(texts, found)
    if session.as_json:
        session.out.json(_as_json(result))
        return
    session.out.table(COLUMNS, [(name, *asdict(scores).values()) for name, scores in result.types.items()])
    session.out.line(f"something was found in {result.alarms} of {result.unlabelled} texts without a label")


def _plain(spans: Sequence[Span]) -> list[dict[str, object]]:
    return [{"type": span.type, "start": span.start, "end": span.end} for span in spans]


def _as_json(result: Measured) -> dict[str, object]:
    return {
        "types": {name: asdict(scores) for name, scores in result.types.items()},
        "alarms": result.alarms,
        "unlabelled": result.unlabelled,
    }
