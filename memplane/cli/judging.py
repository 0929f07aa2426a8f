"""What the commands that let the data plane judge labelled rows share: options, progress, the dump, the end.

A task adds `dataplane/judges/<task>.py`, `memplane/evaluation/<task>.py` (reads rows, measures) and a command here
beside `memplane/cli/eval_dates.py`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich import progress as bars

from memplane.cli.child import ChildFailed, answers
from memplane.cli.output import Output
from memplane.cli.session import json_option, run
from memplane.evaluation.dataset import BadDataset

MODULE = "dataplane.judge"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])
Row = Mapping[str, Any]


def judging_options(command: Command) -> Command:
    """Adds `--data`, which may be given more than once, `--dump` and `--json`."""
    options = (
        click.option("--data", type=FILE, required=True, multiple=True, help="What to judge; may be repeated."),
        click.option(
            "--dump", type=click.Path(dir_okay=False, path_type=Path), help="Write each row's answer here, as JSONL."
        ),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def judged(out: Output, task: str, rows: Sequence[Row], settings: Mapping[str, object] | None = None) -> list[Any]:
    """The data plane's answer to each row, with a bar on stderr. Raises ChildFailed."""
    with bars.Progress(*bars.Progress.get_default_columns(), console=out.notes) as shown:
        bar = shown.add_task(task, total=len(rows))
        return run(_judged({**(settings or {}), "task": task}, rows, lambda: shown.advance(bar)))


async def _judged(settings: Row, rows: Sequence[Row], advance: Callable[[], object]) -> list[Any]:
    found = []
    async for answer in answers(MODULE, [settings, *rows], len(rows)):
        found.append(answer)
        advance()
    return found


@contextmanager
def failures() -> Iterator[None]:
    """Ends the command in one line where the data is not of the format or the data plane could not judge it."""
    try:
        yield
    except (BadDataset, ChildFailed) as error:
        raise click.ClickException(str(error)) from None


def write_dump(path: Path | None, lines: Iterable[Row]) -> None:
    """Writes one JSON object a line; nothing where no file was named."""
    if path is not None:
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
