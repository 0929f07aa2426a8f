"""`memplane eval`: measures searches on labelled data."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import click
from rich import progress as bars

from memplane.builtin import policies_folder
from memplane.cli.calibrate import calibrate_command
from memplane.cli.eval_compare import compare_command
from memplane.cli.eval_dates import dates_command
from memplane.cli.eval_gate import gate_command
from memplane.cli.eval_guard import guard_command
from memplane.cli.eval_pairs import pairs_command
from memplane.cli.eval_sensitive import sensitive_command
from memplane.cli.output import Output
from memplane.cli.planes import PlaneSettings, log_sink, planes
from memplane.cli.processes import PlaneFailed
from memplane.cli.session import Session, config_option, connection_options, logs_option, pass_session, run
from memplane.client import MemPlaneClient
from memplane.evaluation.dataset import BadDataset, Group, read_groups
from memplane.evaluation.metrics import Scores
from memplane.evaluation.runner import Answer, Progress, Report, ask, load, report

CALL_TIMEOUT_S = 300.0
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
COLUMNS = ("category", "n", "recall@5", "recall@10", "recall@20", "hit@10", "NDCG@10", "MRR")


@dataclass(frozen=True)
class PlaneOptions:
    """How the planes of this command are started: policy folder, configuration file, whether their logs are shown."""

    policy: Path | None
    config: Path | None
    logs: bool


@click.group(
    "eval",
    commands=[
        calibrate_command,
        compare_command,
        dates_command,
        gate_command,
        guard_command,
        pairs_command,
        sensitive_command,
    ],
)
def evaluate() -> None:
    """Measures searches and decisions, and fits an embedding model's maps, on labelled data."""


@evaluate.command(
    epilog="""\b
Examples:
  memplane eval retrieval --memories memories.jsonl --questions questions.jsonl
  memplane eval retrieval --memories m.jsonl --questions q.jsonl --policy ./policies --dump answers.jsonl --json

\b
Formats, one JSON object a line:
  memories   {"group", "id", "text", "time", "session", "speaker"}   time, session and speaker may be null
  questions  {"group", "id", "text", "context_turns", "category", "evidence": [[id, …], …], "optional", "time"}"""
)
@click.option("--memories", type=FILE, required=True, help="What to load.")
@click.option("--questions", type=FILE, required=True, help="What to ask.")
@click.option(
    "--policy",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Policy folder; by default the shipped one that keeps every turn.",
)
@click.option("--dump", type=click.Path(dir_okay=False, path_type=Path), help="Write each answer's ids here, as JSONL.")
@config_option
@logs_option
@connection_options
@pass_session
def retrieval(session: Session, /, memories: Path, questions: Path, dump: Path | None, **options: Any) -> None:
    """Loads memories, asks questions, and prints recall, hit rate, NDCG and MRR by category and over all.

    Starts planes of its own in a temporary folder, unless a data plane is named with --target (or its variable).
    """
    try:
        groups = read_groups(memories, questions)
        result, answers, seconds = run(_measure(session, groups, PlaneOptions(**options)))
    except (BadDataset, PlaneFailed) as error:
        raise click.ClickException(str(error)) from None
    if dump is not None:
        dump.write_text("".join(_dumped(answer) for answer in answers), encoding="utf-8")
    if session.as_json:
        session.out.json(as_json(result, seconds))
    else:
        show(session.out, result, seconds)
    if result.writes.get("FAILED"):
        raise click.exceptions.Exit(1)


async def _measure(
    session: Session, groups: list[Group], options: PlaneOptions
) -> tuple[Report, list[Answer], dict[str, float]]:
    """The report, the answers, and the seconds that loading and asking took."""
    async with _client(session, options) as client:
        with _progress(session.out, groups) as advance:
            start = perf_counter()
            loaded = await load(client, groups, f"eval.r{uuid4().hex[:8]}", advance)
            between = perf_counter()
            answers = await ask(client, loaded, advance)
            seconds = {"load": between - start, "ask": perf_counter() - between}
    return report(loaded, answers), answers, seconds


@asynccontextmanager
async def _client(session: Session, options: PlaneOptions) -> AsyncIterator[MemPlaneClient]:
    """A client of the data plane that was named, else of one that lives as long as the block."""
    if session.target:
        if options.policy is not None:
            raise click.UsageError("--policy is for planes that this command starts; --target names a running one")
        async with MemPlaneClient(session.target, session.api_key, CALL_TIMEOUT_S, session.tls) as client:
            yield client
        return
    with tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder:
        settings = PlaneSettings(
            Path(folder), options.policy or policies_folder("examples/evaluation"), config=options.config
        )
        sink = log_sink(session.out, options.logs)
        async with planes(settings, sink) as running, running.memory(CALL_TIMEOUT_S) as client:
            yield client


@contextmanager
def _progress(out: Output, groups: list[Group]) -> Iterator[Progress]:
    """Two bars on stderr: memories written, questions asked."""
    columns = (bars.TextColumn("{task.description:>9}"), bars.BarColumn(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, bars.TimeRemainingColumn(), console=out.notes) as shown:
        tasks = {
            "write": shown.add_task("memories", total=sum(len(group.memories) for group in groups)),
            "ask": shown.add_task("questions", total=sum(len(group.questions) for group in groups)),
        }
        yield lambda name, count: shown.advance(tasks[name], count)


def _dumped(answer: Answer) -> str:
    return json.dumps({"id": answer.question.id, "ids": list(answer.ids)}, ensure_ascii=False) + "\n"


def as_json(result: Report, seconds: dict[str, float]) -> dict[str, object]:
    """The report as one JSON value."""
    return {
        "overall": {"n": result.questions, **asdict(result.overall)},
        "categories": {name: {"n": n, **asdict(scores)} for name, (n, scores) in result.categories.items()},
        "asked": result.asked,
        "memories": result.memories,
        "writes": result.writes,
        "degraded": result.degraded,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def show(out: Output, result: Report, seconds: dict[str, float]) -> None:
    """The report for people."""
    rows = [_row(name, n, scores) for name, (n, scores) in result.categories.items()]
    out.table(COLUMNS, [*rows, _row("all", result.questions, result.overall)])
    outcomes = ", ".join(f"{count} {action}" for action, count in result.writes.items())
    out.line(f"{result.memories} memories: {outcomes}")
    if result.asked > result.questions:
        out.line(f"{result.asked - result.questions} questions have no evidence and were not scored")
    if result.degraded:
        out.line(f"{result.degraded} answers were degraded", "yellow")
    out.line(f"loading {seconds['load']:.1f} s, asking {seconds['ask']:.1f} s")


def _row(name: str, count: int, scores: Scores) -> tuple[object, ...]:
    return (name, count, *asdict(scores).values())
