"""`memplane eval compare`: tells whether two runs of an evaluation really differ."""

from pathlib import Path

import click

from memplane.cli.judging import FILE, failures
from memplane.cli.reporting import ReportFiles, publish, report_options
from memplane.cli.session import Session, json_option, pass_session
from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.comparable import TASKS
from memplane.evaluation.comparing import Answered, comparison, counted, read_dump, read_group_names


@click.command(
    "compare",
    epilog="""\b
Examples:
  memplane eval compare --a before.jsonl --b after.jsonl --questions questions.jsonl
  memplane eval compare --a before.jsonl --b after.jsonl --questions questions.jsonl --groups group
  memplane eval compare --task gate --a old.jsonl --b new.jsonl --data turns.jsonl --html differences.html

\b
Rows are drawn one by one: what holds for more rows about these groups. With --groups whole groups are drawn: what holds
for other groups; it takes ten of them or more.""",
)
@click.option("--task", type=click.Choice(sorted(TASKS)), default="retrieval", show_default=True, help="Whose dumps.")
@click.option("--a", type=FILE, required=True, help="Dump of the first run.")
@click.option("--b", type=FILE, required=True, help="Dump of the second run.")
@click.option(
    "--data",
    "--questions",
    "data",
    type=FILE,
    required=True,
    multiple=True,
    help="What both answered; may be repeated.",
)
@click.option("--groups", metavar="FIELD", help="Draw whole groups: those of rows with one value of this field.")
@click.option("--seed", type=click.IntRange(0), default=Draw.seed, show_default=True, help="Of the drawing.")
@click.option(
    "--resamples", type=click.IntRange(100, 1_000_000), default=Draw.resamples, show_default=True, help="How many."
)
@report_options
@json_option
@pass_session
def compare_command(
    session: Session, /, task: str, data: tuple[Path, ...], groups: str | None, files: ReportFiles, **options: object
) -> None:
    """Compares two dumps of one task by paired bootstrap: difference, 95 % interval and p, overall and by category."""
    known, paths = TASKS[task], (Path(str(options["a"])), Path(str(options["b"])))
    with failures():
        rows = known.read(data)
        names = read_group_names(data, groups) if groups else {}
        a, b = (read_dump(path, known, rows) for path in paths)
        answered = counted(known, Answered(rows, a, b, [_group(known.key(row), names) for row in rows]))
        draw = Draw(int(str(options["seed"])), bool(groups), int(str(options["resamples"])))
        found = comparison(known, answered, draw, (str(paths[0]), str(paths[1])))
    publish(session.out, found, files)


def _group(key: str, names: dict[str, str]) -> str:
    """The group of a row; that of its file's row where it is one of several that this stands for (`<id>#0`)."""
    return names.get(key) or names.get(key.rpartition("#")[0]) or key
