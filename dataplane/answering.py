"""How a child of the command line answers: JSON lines in on stdin and out on stdout, on stderr what is wrong."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import IO, Any

from dataplane.errors import BackendUnavailable
from memplane.settings import BadConfig


def answered(answer: Callable[[Sequence[str], IO[str]], Coroutine[Any, Any, None]]) -> int:
    """Answers stdin on stdout; the exit code: 0, 2 for a wrong setting, 1 where a backend fails."""
    try:
        # Not splitlines: JSON may hold characters that it takes for the end of a line.
        asyncio.run(answer([line for line in sys.stdin.read().split("\n") if line], sys.stdout))
    except BadConfig as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except BackendUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
