"""`memplane eval tune`: proposes weights of the search for a company's own questions."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import yaml

from memplane.builtin import policies_folder
from memplane.cli.eval_retrieval import CALL_TIMEOUT_S, FOLDER, progress_bars
from memplane.cli.judging import FILE
from memplane.cli.planes import PlaneSettings, RunningPlanes, planes
from memplane.cli.policy_set import read_documents
from memplane.cli.processes import PlaneFailed
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, config_option, json_option, pass_session, run
from memplane.client import MemPlaneClient
from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.dataset import BadDataset, Group, read_groups
from memplane.evaluation.metrics import Scores
from memplane.evaluation.retrieval import SEARCHES, both_answered
from memplane.evaluation.runner import Answer, LoadedGroup, ask, load, report
from memplane.evaluation.tune_report import Tuned, fragment, tune_report
from memplane.evaluation.tuning import KEYS, Setting, Value, ascend, best_of, halves, nested, value_of
from memplane.v1 import policy_pb2

DOCUMENT = "tune.yaml"
ACKS_S = 30.0
SECTION = "retrieve_policy."
EVERY_TURN = ("write.yaml", "sensitive.yaml")
"""Of the evaluation policy: with these every turn is kept as it is, whatever the policy that is tuned would keep."""


class Refused(Exception):
    """The control plane refused a setting; the text says why."""


@dataclass(frozen=True)
class TuneOptions:
    """Policy folder, configuration of the planes, metric that counts, and at most how many trials."""

    policy: Path
    config: Path | None
    metric: str
    trials: int


class Keys(click.ParamType[tuple[str, tuple[Value, ...]]]):
    """`KEY=VALUE,VALUE`, numbers where they are numbers."""

    name = "KEY=VALUES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[Value, ...]]:
        """The key and its values; a usage error says what would be right."""
        key, _, values = str(value).partition("=")
        if not key or not values:
            self.fail(f"{value!r} is not KEY=VALUE,VALUE such as weights.text=0,0.2,0.4", param, ctx)
        return key.removeprefix(SECTION), tuple(map(value_of, values.split(",")))


@click.command(
    "tune",
    epilog="""\b
Examples:
  memplane eval tune --memories memories.jsonl --questions questions.jsonl --output retrieve.yaml
  memplane eval tune --memories m.jsonl --questions q.jsonl --policy ./policies --key weights.text=0,0.2,0.4,0.8

\b
Half of the groups (of a single group, half of its questions) are held back from the trials and tell whether what was
found holds. It proposes nothing unless the 95 % interval of the gain on them is above 0.""",
)
@click.option("--memories", type=FILE, required=True, help="What to load, as for eval retrieval.")
@click.option("--questions", type=FILE, required=True, help="What to ask, as for eval retrieval.")
@click.option("--policy", type=FOLDER, help="Policy folder to begin with.  [default: the default one that ships]")
@click.option(
    "--key", "keys", type=Keys(), multiple=True, help="A key of retrieve_policy and what to try; instead of the usual."
)
@click.option(
    "--metric", type=click.Choice(list(Scores.__dataclass_fields__)), default="recall_at_10", show_default=True
)
@click.option("--trials", type=click.IntRange(1, 1000), default=40, show_default=True, help="At most so many.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the proposal here, as YAML of a policy."
)
@report_options
@config_option
@json_option
@pass_session
def tune_command(
    session: Session, /, memories: Path, questions: Path, output: Path | None, files: ReportFiles, **options: Any
) -> None:
    """Proposes values of retrieve_policy that find more, and says honestly whether the gain holds.

    Memories are loaded once into planes of its own; each trial is a policy reload and a round of searches.
    """
    keys: Mapping[str, Sequence[Value]] = dict(options.pop("keys")) or KEYS
    options["policy"] = options["policy"] or policies_folder("default")
    try:
        groups = read_groups(memories, questions)
        tuned = run(_tune(session, groups, keys, TuneOptions(**options)))
    except (BadDataset, PlaneFailed, Refused) as error:
        raise click.ClickException(str(error)) from None
    if output is not None and tuned.holds:
        output.write_text(fragment(tuned), encoding="utf-8")
    publish(session.out, tune_report(tuned), files)


async def _tune(
    session: Session, groups: list[Group], keys: Mapping[str, Sequence[Value]], options: TuneOptions
) -> Tuned:
    with tempfile.TemporaryDirectory(prefix="memplane-tune-") as folder:
        settings = PlaneSettings(Path(folder), options.policy, config=options.config)
        async with planes(settings) as running, running.memory(CALL_TIMEOUT_S) as client:
            trial = _Bench(running, client, options, f"eval.r{uuid4().hex[:8]}")
            start = await trial.start(keys)
            with progress_bars(session.out, groups) as advance:
                loaded = await load(client, groups, trial.root, advance)
            training, held = halves(loaded)
            if not training or not held:
                raise BadDataset("tuning takes two questions with evidence, or more")

            async def measure(setting: Setting) -> float:
                found = await trial.ask(setting, training)
                value: float = getattr(report(training, found).overall, options.metric)
                session.out.note(f"{options.metric} {value:.3f} with {json.dumps(nested(setting))}")
                return value

            trials = await ascend(measure, start, keys, options.trials)
            before = await trial.ask(start, held)
            after = await trial.ask(best_of(trials), held)
    return Tuned(options.metric, trials, start, both_answered(before, after), SEARCHES, Draw())


class _Bench:
    """The running planes, on which one setting after another is put in force for the questions."""

    def __init__(self, running: RunningPlanes, client: MemPlaneClient, options: TuneOptions, root: str) -> None:
        self.root = root
        self._running, self._client = running, client
        self._documents = read_documents(options.policy)

    async def start(self, keys: Mapping[str, Sequence[Value]]) -> dict[str, Value]:
        """Lets every turn be kept; the values that the keys have now. Raises Refused for a key that is none."""
        await self._reload({})
        async with self._running.admin() as admin:
            values = (await admin.effective(self.root)).values
        now = {each.path.removeprefix(SECTION): each.value for each in values if each.path.startswith(SECTION)}
        unknown = next((key for key in keys if key not in now), None)
        if unknown is not None:
            raise Refused(f"retrieve_policy has no value {unknown!r}; it has {', '.join(sorted(now))}")
        return {key: value_of(now[key].string_value or str(now[key].number_value)) for key in keys}

    async def ask(self, setting: Setting, half: Sequence[LoadedGroup]) -> list[Answer]:
        """The answers of a half under a setting."""
        await self._reload(nested(setting))
        return await ask(self._client, half, lambda _what, _count: None)

    async def _reload(self, retrieve: Mapping[str, Any]) -> None:
        overrides = {**_every_turn(), "retrieve_policy": {**retrieve, "query_cache_ttl_s": 0}}
        text = json.dumps({"namespace_policy": {"overrides": {self.root: overrides}}})
        document = policy_pb2.PolicyDocument(name=DOCUMENT, content=text.encode())
        async with self._running.admin() as admin:
            response = await admin.reload([*self._documents, document], ACKS_S)
        errors = [
            each.message for each in response.diagnostics if each.severity == policy_pb2.DIAGNOSTIC_SEVERITY_ERROR
        ]
        if errors or response.propagation.nacked or response.propagation.pending:
            raise Refused("; ".join(errors) or "the data plane did not take the policy")


def _every_turn() -> dict[str, Any]:
    folder = policies_folder("examples/evaluation")
    return {
        name: section
        for file in EVERY_TURN
        for name, section in yaml.safe_load((folder / file).read_text(encoding="utf-8")).items()
    }
