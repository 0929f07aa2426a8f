"""Lets the data plane's own logic judge rows, for the commands of `memplane eval`: `python -m dataplane.judge`.

JSON lines in: first `{"task": "dates", …}` with the settings of that task, then one row a line. JSON lines out: the
task's answer to each row, in order. The exit code is 0, 1 where a backend fails, 2 for a wrong setting; stderr says
why.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import IO, Any

from dataplane.answering import answered
from dataplane.judges import dates, gate, guard, pairs, sensitive
from memplane.settings import BadConfig

Row = Mapping[str, Any]
Judge = Callable[[Row, Sequence[Row]], AsyncIterator[Row]]
"""Takes the settings and all rows, and yields one answer a row in order. May raise BadConfig, BackendUnavailable."""

JUDGES: Mapping[str, Judge] = {
    "dates": dates.judge,
    "gate": gate.judge,
    "pairs": pairs.judge,
    "guard": guard.judge,
    "sensitive": sensitive.judge,
}


async def judge(lines: Sequence[str], out: IO[str]) -> None:
    """Answers the lines. Raises BadConfig or BackendUnavailable."""
    settings = json.loads(lines[0])
    task = settings.pop("task")
    if task not in JUDGES:
        raise BadConfig(f"no task {task!r}; there are {', '.join(sorted(JUDGES))}")
    async for answer in JUDGES[task](settings, [json.loads(line) for line in lines[1:]]):
        out.write(json.dumps(answer) + "\n")
        out.flush()


def main() -> int:
    """Answers stdin on stdout; the exit code."""
    return answered(judge)


if __name__ == "__main__":
    sys.exit(main())
