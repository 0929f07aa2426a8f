"""What every backend can be asked, and the time of day."""

from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """The time of day, so that tests own it."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a backend that answers.

    `code`, such as READ_ONLY, is for programs; `message`, "what is wrong; what to do", for people.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What answers, such as "PostgreSQL 17.2", and what is wrong with it."""

    server: str
    problems: tuple[Problem, ...] = ()


class Backend(Protocol):
    """What every backend can be asked."""

    async def examine(self, deadline_s: float) -> Examination:
        """Looks at its version, role and settings; cheap enough for every 10 s. Raises BackendUnavailable."""
        ...

    async def close(self) -> None:
        """Finishes what was accepted and lets go. Idempotent."""
        ...
