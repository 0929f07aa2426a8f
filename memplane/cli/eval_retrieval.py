"""`memplane eval retrieval`: measures searches on labelled data, under one policy or several."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import click
from rich import progress as bars

from memplane.builtin import policies_folder
from memplane.cli.judging import FILE
from memplane.cli.output import Output
from memplane.cli.planes import PlaneSettings, log_sink, planes
from memplane.cli.processes import PlaneFailed
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, config_option, connection_options, logs_option, pass_session, run
from memplane.client import MemPlaneClient
from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.dataset import BadDataset, Group, read_groups
from memplane.evaluation.retrieval import PolicyRun, retrieval_report
from memplane.evaluation.runner import Answer, Progress, ask, load, report

CALL_TIMEOUT_S = 300.0
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@dataclass(frozen=True)
class PlaneOptions:
    """How the planes of this command are started: policy folder, configuration file, whether their logs are shown."""

    policy: Path | None
    config: Path | None
    logs: bool


@click.command(
    "retrieval",
    epilog="""\b
Examples:
  memplane eval retrieval --memories memories.jsonl --questions questions.jsonl
  memplane eval retrieval --memories m.jsonl --questions q.jsonl --policy ./policies --dump answers.jsonl --json
  memplane eval retrieval --memories m.jsonl --questions q.jsonl --policy old --policy new --html report.html

\b
Formats, one JSON object a line:
  memories   {"group", "id", "text", "time", "session", "speaker"}   time, session and speaker may be null
  questions  {"group", "id", "text", "context_turns", "category", "evidence": [[id, …], …], "optional", "time"}""",
)
@click.option("--memories", type=FILE, required=True, help="What to load.")
@click.option("--questions", type=FILE, required=True, help="What to ask.")
@click.option(
    "--policy",
    "policies",
    type=FOLDER,
    multiple=True,
    help="Policy folder; by default the shipped one that keeps every turn. Further ones are compared with the first.",
)
@click.option(
    "--dump",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each answer's ids here, as JSONL; of several policies each into a file with its name.",
)
@report_options
@config_option
@logs_option
@connection_options
@pass_session
def retrieval_command(
    session: Session, /, memories: Path, questions: Path, policies: tuple[Path, ...], dump: Path | None, **options: Any
) -> None:
    """Loads memories, asks questions, and prints recall, hit rate, NDCG and MRR by category and over all.

    Starts planes of its own in a temporary folder, unless a data plane is named with --target (or its variable).
    """
    files: ReportFiles = options.pop("files")
    try:
        groups = read_groups(memories, questions)
        runs = [run(_measure(session, groups, PlaneOptions(policy, **options))) for policy in policies or (None,)]
        if dump is not None:
            _write_dumps(dump, runs)
        found = retrieval_report(groups, runs, Draw())
    except (BadDataset, PlaneFailed) as error:
        raise click.ClickException(str(error)) from None
    publish(session.out, found, files)
    if any(each.measured.writes.get("FAILED") for each in runs):
        raise click.exceptions.Exit(1)


async def _measure(session: Session, groups: list[Group], options: PlaneOptions) -> PolicyRun:
    async with _client(session, options) as client:
        with progress_bars(session.out, groups) as advance:
            start = perf_counter()
            loaded = await load(client, groups, f"eval.r{uuid4().hex[:8]}", advance)
            between = perf_counter()
            answers = await ask(client, loaded, advance)
            seconds = {"load": between - start, "ask": perf_counter() - between}
    name = str(options.policy) if options.policy else "evaluation"
    return PolicyRun(name, report(loaded, answers), answers, seconds)


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
        policy = options.policy or policies_folder("examples/evaluation")
        settings = PlaneSettings(Path(folder), policy, config=options.config)
        async with (
            planes(settings, log_sink(session.out, options.logs)) as running,
            running.memory(CALL_TIMEOUT_S) as client,
        ):
            yield client


@contextmanager
def progress_bars(out: Output, groups: Sequence[Group]) -> Iterator[Progress]:
    """Two bars on stderr: memories written, questions asked."""
    columns = (bars.TextColumn("{task.description:>9}"), bars.BarColumn(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, bars.TimeRemainingColumn(), console=out.notes) as shown:
        tasks = {
            "write": shown.add_task("memories", total=sum(len(group.memories) for group in groups)),
            "ask": shown.add_task("questions", total=sum(len(group.questions) for group in groups)),
        }
        yield lambda name, count: shown.advance(tasks[name], count)


def _write_dumps(path: Path, runs: Sequence[PolicyRun]) -> None:
    for number, each in enumerate(runs, start=1):
        named = path.with_name(f"{path.stem}.{number}-{Path(each.name).name}{path.suffix}") if len(runs) > 1 else path
        named.write_text("".join(_dumped(answer) for answer in each.answers), encoding="utf-8")


def _dumped(answer: Answer) -> str:
    return json.dumps({"id": answer.question.id, "ids": list(answer.ids)}, ensure_ascii=False) + "\n"
