"""Long work goes turn by turn: between two of them, whoever waits at the door may come first.

The door (`server/admission.py`) puts the call's turn here; a pipeline renews it between parts of its work, and work
that came by no door, such as the queue's, goes on at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Turn(Protocol):
    """The place that a call holds."""

    async def renew(self, cost: int) -> None:
        """Gives the place up and waits for the next one, which pays for `cost` units of work."""
        ...


_CURRENT: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def holding(turn: Turn) -> Iterator[None]:
    """Work inside the block goes by this turn."""
    token = _CURRENT.set(turn)
    try:
        yield
    finally:
        _CURRENT.reset(token)


async def next_turn(cost: int) -> None:
    """Lets others go first, if there are any, before the next `cost` units of work."""
    turn = _CURRENT.get()
    if turn is not None:
        await turn.renew(cost)
