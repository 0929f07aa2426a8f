"""Who calls, and for how long: what every service reads from a call's context."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from dataplane.pipelines.caller import Caller
from dataplane.ports import Problem
from memplane.authentication.authenticator import Authenticator
from memplane.errors import PolicyNotLoaded
from memplane.policy.snapshot import PolicySnapshot

LONGEST_CALL_S = 600.0
"""The deadline of a call that names none."""

ANSWER_SHARE, ANSWER_MOST_S = 0.1, 0.5
"""What of a call's time is kept for its answer: so that a caller hears which store was too slow, instead of nothing.
Unmeasured."""

Context = grpc.aio.ServicerContext[Any, Any]


class Callers:
    """Tells who calls, under which policy: asked at the door, and again when the call's turn has come.

    `policy` gives the snapshot in force, read once each time; it may raise what keeps a call from being served.
    """

    def __init__(self, policy: Callable[[], PolicySnapshot | None], authenticator: Authenticator):
        self._policy = policy
        self._authenticator = authenticator

    async def prepare(self, context: Context) -> None:
        """Comes once before `of`; see Authenticator."""
        await self._authenticator.prepare(context)

    def of(self, context: Context) -> Caller:
        """Who calls; nothing is allowed before there is a policy. Raises PolicyNotLoaded, Unauthenticated."""
        snapshot = self.policy()
        return Caller(self._authenticator.identify(context, snapshot.access), snapshot)

    def problems(self) -> tuple[Problem, ...]:
        """What doctor is told of authentication."""
        return tuple(Problem(code, text) for code, text in self._authenticator.problems().items())

    def policy(self) -> PolicySnapshot:
        """The policy in force. Raises PolicyNotLoaded."""
        snapshot = self._policy()
        if snapshot is None:
            raise PolicyNotLoaded
        return snapshot


def deadline_of(context: Context) -> float:
    """Until when the work of a call may take, by the event loop's clock: a little less than its caller waits."""
    remaining_s = context.time_remaining()
    allowed_s = LONGEST_CALL_S if remaining_s is None else min(remaining_s, LONGEST_CALL_S)
    return asyncio.get_running_loop().time() + allowed_s - min(ANSWER_SHARE * max(0.0, allowed_s), ANSWER_MOST_S)
