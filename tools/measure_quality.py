"""Measures the quality of everything again and writes build/quality/{report.md,report.html,report.json}.

    MEMPLANE_EVAL_DATA=… python tools/measure_quality.py [--minutes 30] [--only retrieval]

Runs `memplane eval` on every set of `quality_plan`, searches under the evaluation policy and under the default one
(its order alone: every turn is kept). Each run leaves a report of its own beside the whole. What would begin after
`--minutes` is left out and named. About 20 minutes of two free cores.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from quality_plan import CATEGORIES, JUDGEMENTS, SEARCHES, Goal, Measurement

from memplane.evaluation.report.html import html
from memplane.evaluation.report.markdown import markdown
from memplane.evaluation.report.model import Report, Table, Value

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "build" / "quality"
COLUMNS = ("measurement", "figure", "value", "goal", "met")


@dataclass(frozen=True)
class Outcome:
    """What a run printed, None where it was left out or failed, why, and the seconds it took."""

    measurement: Measurement
    printed: Mapping[str, Any] | None
    problem: str
    seconds: float


def main() -> int:
    """Measures and writes; 1 where something could not be measured."""
    arguments = _arguments()
    data = os.environ.get("MEMPLANE_EVAL_DATA", "")  # noqa: TID251 - a script, not a plane
    if not data or not Path(data).is_dir():
        sys.stderr.write("MEMPLANE_EVAL_DATA names no folder; it holds the sets that are measured on\n")
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    begun = perf_counter()
    with tempfile.TemporaryDirectory(prefix="memplane-quality-") as scratch:
        planned = [each for each in _planned(Path(scratch)) if arguments.only in (None, each.task)]
        outcomes = []
        for measurement in planned:
            left_s = 60 * arguments.minutes - (perf_counter() - begun)
            outcomes.append(_run(measurement, Path(data), Path(scratch), left_s))
            print(f"{measurement.name}: {outcomes[-1].problem or f'{outcomes[-1].seconds:.0f} s'}", flush=True)
    _write(_report(outcomes, perf_counter() - begun))
    print(f"written to {TARGET}")
    return int(any(outcome.printed is None for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", choices=sorted({*(each.task for each in JUDGEMENTS), "retrieval"}))
    return parser.parse_args()


def _planned(scratch: Path) -> list[Measurement]:
    """The judgements, then the searches under both policies."""
    evaluation, default = scratch / "evaluation", scratch / "default"
    shutil.copytree(ROOT / "policies" / "examples" / "evaluation", evaluation)
    shutil.copytree(evaluation, default, ignore=shutil.ignore_patterns("*.test.yaml"))
    shutil.copy(ROOT / "policies" / "default" / "retrieve.yaml", default)
    options = ("--policy", str(evaluation), "--policy", str(default))
    return [
        *JUDGEMENTS,
        *(
            Measurement(
                f"searches, {name}",
                "retrieval",
                (
                    ("--memories", f"retrieval/{name}/memories.jsonl"),
                    ("--questions", f"retrieval/{name}/questions.jsonl"),
                ),
                list(_search_goals(name, evaluation, default)),
                options=options,
            )
            for name in SEARCHES
        ),
    ]


def _search_goals(name: str, evaluation: Path, default: Path) -> Iterator[Goal]:
    at_5, at_10 = SEARCHES[name]
    yield Goal(("policies", str(evaluation), "overall", "recall_at_5"), least=at_5)
    yield Goal(("policies", str(evaluation), "overall", "recall_at_10"), least=at_10)
    for category, least in CATEGORIES.get(name, {}).items():
        yield Goal(("policies", str(evaluation), "categories", category, "recall_at_10"), least=least)
    yield from (Goal(("policies", str(default), "overall", figure)) for figure in ("recall_at_5", "recall_at_10"))


def _run(measurement: Measurement, data: Path, scratch: Path, left_s: float) -> Outcome:
    """One command, which gets the time that is left."""
    if left_s <= 0:
        return Outcome(measurement, None, "left out, the time was used up", 0.0)
    begun = perf_counter()
    command = [sys.executable, "-m", "memplane.cli.main", "eval", measurement.task, *measurement.options]
    for option, name in measurement.files:
        path = data / name
        command += [option, str(_thinned(path, measurement.most_rows, scratch) if measurement.most_rows else path)]
    page = f"{measurement.name.replace(', ', '-').replace(' ', '-')}.html"
    try:
        done = subprocess.run(
            [*command, "--json", "--html", str(TARGET / page)], capture_output=True, timeout=left_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(measurement, None, "cut off, the time was used up", perf_counter() - begun)
    if done.returncode:
        told = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.startswith("Error: ")]
        return Outcome(measurement, None, told[-1] if told else f"exit code {done.returncode}", perf_counter() - begun)
    return Outcome(measurement, json.loads(done.stdout), "", perf_counter() - begun)


def _thinned(path: Path, most: int, scratch: Path) -> Path:
    """A file of evenly spread rows of this one, at most `most` of them."""
    with path.open("rb") as lines:
        rows = [line for line in lines if line.strip()]
    step = -(-len(rows) // most)
    thin = scratch / f"{path.parent.name}-{path.name}"
    thin.write_bytes(b"".join(rows[::step]))
    return thin


def _report(outcomes: Sequence[Outcome], seconds: float) -> Report:
    told = [row for outcome in outcomes for row in _rows(outcome)]
    times: list[tuple[Value, ...]] = [(each.measurement.name, round(each.seconds), each.problem) for each in outcomes]
    bounded = [row for row in told if row[4] is not None]
    return Report(
        title="Quality of MemPlane",
        about={
            "goals met": f"{sum(row[4] is True for row in bounded)} of {len(bounded)}",
            "machine time": f"{seconds / 60:.1f} minutes on {os.cpu_count()} cores",
        },
        tables=[
            Table("Figures beside the goals", COLUMNS, told, charted=("value",)),
            Table("Time", ("measurement", "seconds", "problem"), times),
        ],
        data={
            "seconds": round(seconds),
            "figures": [dict(zip(COLUMNS, row, strict=True)) for row in told],
            "measurements": {each.measurement.name: each.printed or {"problem": each.problem} for each in outcomes},
        },
    )


def _rows(outcome: Outcome) -> Iterator[tuple[Value, ...]]:
    for goal in outcome.measurement.goals:
        value = _at(outcome.printed, goal.path)
        told = ".".join(Path(part).name if "/" in part else part for part in goal.path if part != "policies")
        yield (outcome.measurement.name, told, value, str(goal), None if value is None else goal.met(value))


def _at(value: Any, path: Sequence[str]) -> float | None:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


def _write(report: Report) -> None:
    (TARGET / "report.md").write_text(markdown(report), encoding="utf-8")
    (TARGET / "report.html").write_text(html(report), encoding="utf-8")
    text = json.dumps(report.data, ensure_ascii=False, indent=2)
    (TARGET / "report.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
