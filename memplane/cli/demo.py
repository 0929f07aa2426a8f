"""`memplane demo`: shows the whole of MemPlane once, and stops."""

import shutil
import tempfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from rich import progress as bars

from memplane.builtin import policies_folder
from memplane.cli import config
from memplane.cli.output import Output, shorten
from memplane.cli.planes import PlaneSettings, RunningPlanes, log_sink, planes
from memplane.cli.processes import PlaneFailed
from memplane.cli.session import Session, config_option, json_option, logs_option, pass_session, run
from memplane.demo import story
from memplane.demo.conversation import read_questions, read_turns
from memplane.evaluation.runner import Report

OVERRIDES_FILE = "namespace.yaml"
DIALOGUE_HITS = 0.5
"""Share of the dialogue's questions whose evidence must come up among ten hits. A floor against breakage, no goal."""


@dataclass
class Summary:
    """What the demo showed: a line for each thing, and whether it held."""

    rows: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, what: str, detail: str, held: bool = True) -> None:
        """Notes one thing."""
        self.rows.append((what, detail, held))

    @property
    def held(self) -> bool:
        """True when everything did."""
        return all(held for _, _, held in self.rows)


@click.command(
    epilog="""\b
Examples:
  memplane demo
  memplane demo --config memplane.toml    on the stores that the file names
  memplane demo --json"""
)
@config_option
@logs_option
@json_option
@pass_session
def demo(session: Session, /, config: Path | None, logs: bool) -> None:
    """Shows everything once on planes of its own, in a temporary folder, and stops.

    A company's conversation in English and Chinese is remembered and asked about; a line of the policy is edited and
    reloaded; the control plane is stopped and a search goes on. Exit code 0 when all of it held.
    """
    start = perf_counter()
    try:
        summary = run(tell(session.out, config, logs))
    except PlaneFailed as error:
        raise click.ClickException(str(error)) from None
    seconds = perf_counter() - start
    if session.as_json:
        rows: list[dict[str, Any]] = [
            {"what": what, "detail": detail, "held": held} for what, detail, held in summary.rows
        ]
        session.out.json({"held": summary.held, "seconds": round(seconds, 1), "summary": rows})
    else:
        session.out.table(
            ("", "what", "result"), [("✓" if held else "✗", what, text) for what, text, held in summary.rows]
        )
        session.out.line(f"{seconds:.0f} s", "dim")
    if not summary.held:
        raise click.exceptions.Exit(1)


async def tell(out: Output, config: Path | None, logs: bool) -> Summary:
    """The story, step by step."""
    summary = Summary()
    with tempfile.TemporaryDirectory(prefix="memplane-demo-") as scratch:
        folder = Path(scratch)
        policy = make_policy(folder / "policies")
        out.line("1. Two planes start as two processes, on embedded stores.", "bold")
        async with planes(PlaneSettings(folder, policy, config=config), log_sink(out, logs)) as running:
            pids = f"process {running.control.process.pid} and {running.data.process.pid}"
            out.line(f"   control plane {running.control_address}, data plane {running.data_address} ({pids})")
            await remember_and_ask(out, running, summary)
            await read_dialogue(out, running, summary)
            await change_policy(out, running, policy, summary)
            await search_alone(out, running, summary)
    return summary


def make_policy(folder: Path) -> Path:
    """The default policy with the demo's override, in a folder that the demo may edit."""
    shutil.copytree(policies_folder("default"), folder)
    (folder / OVERRIDES_FILE).write_bytes(
        resources.files("memplane.demo").joinpath("policy", OVERRIDES_FILE).read_bytes()
    )
    return folder


async def remember_and_ask(out: Output, running: RunningPlanes, summary: Summary) -> None:
    """Writes the conversation and asks about it."""
    turns, questions = read_turns(), read_questions()
    out.line(f"\n2. {len(turns)} turns of a conversation are proposed; the policy decides what is kept.", "bold")
    async with running.memory() as client:
        with bars.Progress(console=out.notes, transient=True) as shown:
            task = shown.add_task("remembering", total=len(turns))
            kept = await story.remember(client, turns, lambda count: shown.advance(task, count))
        out.table(("outcome", "turns"), sorted(kept.actions.items()))
        show_kept(kept, summary)
        out.line(f"\n3. {len(questions)} questions, in English and Chinese.", "bold")
        answers = await story.answer(client, questions, kept.token)
    rows = [(each.rank or "-", each.question.text, best_hit(each)) for each in answers]
    out.table(("found at", "question", "best hit"), rows)
    found = sum(each.rank is not None for each in answers)
    summary.add("answers found", f"{found}/{len(answers)}", found == len(answers))


def show_kept(kept: story.Remembered, summary: Summary) -> None:
    """Notes what became of the conversation."""
    decided = sum(kept.actions.values())
    summary.add("turns decided", f"{decided} of {kept.turns}", decided == kept.turns)
    layers = ", ".join(f"{count} {layer}" for layer, count in sorted(kept.layers.items()))
    summary.add("memories by layer", layers, sum(kept.layers.values()) > 0)
    merged = kept.actions["MERGED"] + kept.actions["UPDATED"]
    summary.add("repeats merged", str(merged), merged > 0)
    summary.add("chatter refused", str(kept.actions["REJECTED"]), kept.actions["REJECTED"] > 0)
    summary.add("corrected facts superseded", str(kept.superseded), kept.superseded > 0)


def best_hit(answered: story.Answered) -> str:
    """The hit that completed the answer, else the first one, else nothing."""
    hits = answered.response.hits
    chosen = [hit for hit in hits if hit.rank == answered.rank] or list(hits[:1])
    return shorten(chosen[0].memory.content, 70) if chosen else ""


async def change_policy(out: Output, running: RunningPlanes, policy: Path, summary: Summary) -> None:
    """Edits a line of YAML and reloads."""
    out.line("\n4. One line of YAML is edited, and the policy reloaded.", "bold")
    async with running.memory() as client, running.admin() as admin:
        result = await story.edit_and_reload(client, admin, policy, read_questions()[0])
    out.line(f"   {story.SETTING_FILE}: {result.old_line}  →  {result.new_line}")
    out.line(f"   {result.version_before}\n   {result.version_after}")
    summary.add("policy version before", result.version_before)
    summary.add("policy version after", result.version_after, result.version_before != result.version_after)
    change = f"{result.hits_before} hits before, {result.hits_after} after; acknowledged by {result.acked} data plane"
    summary.add(f"{result.old_line} → {result.new_line}", change, result.held)


async def search_alone(out: Output, running: RunningPlanes, summary: Summary) -> None:
    """Stops the control plane and searches again."""
    out.line("\n5. The control plane is stopped; the data plane goes on.", "bold")
    exit_code = await running.stop_control()
    async with running.memory() as client:
        answers = await story.answer(client, read_questions()[:1], "")
    response = answers[0].response
    out.line(f"   {answers[0].question.text}  →  {best_hit(answers[0])}")
    for each in response.degraded:
        out.line(f"   degraded: {each.backend} ({each.reason}), {each.fallback}", "yellow")
    detail = f"{len(response.hits)} hits (control plane ended with exit code {exit_code})"
    summary.add("search with the control plane down", detail, len(response.hits) > 0 and exit_code == 0)


async def read_dialogue(out: Output, running: RunningPlanes, summary: Summary) -> None:
    """Reads a LoCoMo dialogue too, where the evaluation data is at hand."""
    data = config.evaluation_data()
    folder = data / "retrieval" / "locomo" if data else None
    if folder is None or not folder.is_dir():
        out.line(f"\n(with {config.DATA_VARIABLE} set, a LoCoMo dialogue is read here as well)", "dim")
        return
    out.line("\n   A long dialogue in English (LoCoMo) is read as well.", "bold")
    async with running.memory(timeout_s=120) as client:
        result = await story.read_dialogue(client, folder)
    summary.add(*describe(result), result.overall.hit_at_10 >= DIALOGUE_HITS)


def describe(result: Report) -> tuple[str, str]:
    """The dialogue's line of the summary."""
    found = round(result.overall.hit_at_10 * result.questions)
    return "LoCoMo dialogue", f"{result.memories} turns; evidence found for {found} of {result.questions} questions"
