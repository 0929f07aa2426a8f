"""Tries policies on golden cases for the control plane: `python -m dataplane.policy_cases`.

JSON lines in: `{"policy": {…}, "cases": [[sort, case], …]}`, a policy set a line. JSON lines out: `{"came": […]}`, what
came of its cases in order; shorter than they where MAX_SECONDS of processor time were spent. Ends with its input.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import IO

from dataplane.judges.policy import PolicyJudge
from memplane.policy.cases import MAX_SECONDS, SORTS, Case
from memplane.policy.model import PolicySet


async def try_sets(lines: IO[str], out: IO[str]) -> None:
    """Answers line by line."""
    judge = PolicyJudge()
    for line in lines:
        asked = json.loads(line)
        policy = PolicySet.model_validate_json(json.dumps(asked["policy"]))
        cases = [SORTS[sort].model_validate_json(json.dumps(case)) for sort, case in asked["cases"]]
        came = [each async for each in judge.judge(policy, _in_time(cases))]
        out.write(json.dumps({"came": came}) + "\n")
        out.flush()


def _in_time(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases, for as long as there is processor time left."""
    until_s = time.process_time() + MAX_SECONDS
    return takewhile(lambda _case: time.process_time() < until_s, cases)


def main() -> int:
    """Answers stdin on stdout until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the control plane, which the terminal asks too, ends it
    asyncio.run(try_sets(sys.stdin, sys.stdout))
    return 0


if __name__ == "__main__":
    sys.exit(main())
