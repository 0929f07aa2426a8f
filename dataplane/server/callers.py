"""Who calls, and for how long: what every service reads from a call's context."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from dataplane.pipelines.caller import Caller
from memplane.errors import PolicyNotLoaded, Unauthenticated
from memplane.policy.snapshot import PolicySnapshot
from memplane.rpc.credentials import bearer_key

LONGEST_CALL_S = 600.0
"""The deadline of a call that names none."""

Context = grpc.aio.ServicerContext[Any, Any]


def caller_of(context: Context, policy: Callable[[], PolicySnapshot | None]) -> Caller:
    """Who calls under which policy; nothing is allowed before there is one. Raises PolicyNotLoaded, Unauthenticated."""
    snapshot = policy()
    if snapshot is None:
        raise PolicyNotLoaded
    identity = snapshot.access.by_api_key(bearer_key(context), now_us=0)
    if identity is None:
        raise Unauthenticated
    return Caller(identity, snapshot)


def deadline_of(context: Context) -> float:
    """When the call ends, by the event loop's clock."""
    remaining_s = context.time_remaining()
    allowed_s = LONGEST_CALL_S if remaining_s is None else min(remaining_s, LONGEST_CALL_S)
    return asyncio.get_running_loop().time() + allowed_s
