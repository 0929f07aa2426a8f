"""What tuning found, as a report and as a fragment of a policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from memplane.evaluation.bootstrap import Difference, Draw
from memplane.evaluation.comparable import Comparable
from memplane.evaluation.comparing import Answered, compared, comparison
from memplane.evaluation.report.model import Report, Table, Value
from memplane.evaluation.tuning import Setting, Trial, best_of, nested


@dataclass(frozen=True)
class Tuned:
    """The trials on the training half, and the answers of the held-back half before (a) and after (b)."""

    metric: str
    trials: Sequence[Trial]
    start: Setting
    held: Answered
    task: Comparable[Any]
    draw: Draw

    @cached_property
    def gain(self) -> Difference:
        """What the metric gains on the held-back half."""
        return compared(self.task, self.held, self.draw)[self.metric]

    @property
    def changed(self) -> dict[str, Any]:
        """The values that differ from those to begin with."""
        return {key: value for key, value in best_of(self.trials).items() if value != self.start[key]}

    @property
    def holds(self) -> bool:
        """Whether something was found, and the gain of it on the held-back half is surely above 0."""
        return bool(self.changed) and self.gain.low > 0


def fragment(tuned: Tuned) -> str:
    """The values that changed, as YAML to be merged into `retrieve_policy`."""
    section = yaml.safe_dump({"retrieve_policy": nested(tuned.changed)}, sort_keys=False, allow_unicode=True)
    return f"# memplane eval tune: {_gain(tuned)}.\n{section}"


def tune_report(tuned: Tuned) -> Report:
    """The verdict, the held-back half before and after, and all trials."""
    told = comparison(tuned.task, tuned.held, tuned.draw, ("before", "after"))
    keys = list(tuned.start)
    rows: list[tuple[Value, ...]] = [
        (number, trial.value, trial.kept, *(trial.setting[key] for key in keys))
        for number, trial in enumerate(tuned.trials)
    ]
    trials = Table("Trials on the training half", ("trial", tuned.metric, "kept", *keys), rows)
    verdict = "take these values" if tuned.holds else "no gain: keep yours"
    return Report(
        title="Tuning of the search",
        about={"verdict": verdict, "on the held-back half": _gain(tuned), "trials": len(rows)},
        tables=[_values(tuned), *told.tables, trials],
        data={
            "verdict": verdict,
            "holds": tuned.holds,
            "changed": nested(tuned.changed),
            "gain": vars(tuned.gain),
            "held": told.data,
            "trials": [vars(trial) for trial in tuned.trials],
        },
    )


def _values(tuned: Tuned) -> Table:
    best = best_of(tuned.trials)
    rows: list[tuple[Value, ...]] = [(key, value, best[key]) for key, value in tuned.start.items()]
    return Table("Values", ("key", "before", "found"), rows)


def _gain(tuned: Tuned) -> str:
    gain = tuned.gain
    return (
        f"{tuned.metric} {gain.a:.3f} before, {gain.b:.3f} after, difference {gain.difference:+.3f}, "
        f"95 % interval {gain.low:+.3f} to {gain.high:+.3f}, {gain.n} questions"
    )
