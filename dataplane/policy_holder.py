"""The policy that this data plane serves from: one reference, swapped whole, read once per request."""

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from math import inf

from dataplane.logic.staleness import stale_action
from memplane.errors import PolicyAbsence, PolicyNotLoaded
from memplane.policy.degradation import StaleAction
from memplane.policy.snapshot import PolicySnapshot


class PolicyOrigin(Enum):
    """Where the policy in `PolicyHolder.current` came from."""

    NONE = "none"
    CONTROL_PLANE = "control_plane"
    LAST_GOOD = "last_good"


class PolicyHolder:
    """What requests read; only the policy stream writes it. Belongs to one event loop.

    `current` is None until a policy was accepted: then nothing is allowed. `loaded_time_us` is when `current` was put
    here (0: never), `heard_time_us` when the control plane was last heard. `problem` tells why the newest attempt to
    load a policy failed; empty when it did not. `absence` tells callers why there is none, as long as there is none.
    `now_s` is a clock that nobody sets: the age of the policy is measured by it.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.current: PolicySnapshot | None = None
        self.origin = PolicyOrigin.NONE
        self.loaded_time_us = 0
        self.heard_time_us = 0
        self.control_plane_connected = False
        self.problem = ""
        self.absence = PolicyAbsence.NOT_FETCHED
        self._loaded = asyncio.Event()
        self._now_s = now_s
        self._fresh_at_s = -inf

    def require(self) -> PolicySnapshot:
        """The policy in force. Raises PolicyNotLoaded, which tells why there is none."""
        if self.current is None:
            raise PolicyNotLoaded(self.absence)
        return self.current

    def swap(self, snapshot: PolicySnapshot, origin: PolicyOrigin, loaded_time_us: int, age_s: float = 0.0) -> None:
        """Puts a checked snapshot in force for every request that starts from now on. `age_s` inf: unknown."""
        self.current = snapshot
        self.origin = origin
        self.loaded_time_us = loaded_time_us
        self.problem = ""
        self._fresh_at_s = self._now_s() - age_s
        self._loaded.set()

    def confirm(self, version: str, generation: int) -> None:
        """The control plane says what is in force; when `current` is that, nothing is wrong."""
        if self.current is not None and (self.current.version, self.current.generation) == (version, generation):
            self.origin = PolicyOrigin.CONTROL_PLANE
            self.problem = ""
            self._fresh_at_s = self._now_s()

    @property
    def age_s(self) -> float:
        """Seconds since the control plane last confirmed that `current` is in force; inf: unknown, or there is none."""
        return self._now_s() - self._fresh_at_s

    @property
    def stale_action(self) -> StaleAction | None:
        """What requests are left with because `current` is stale; None while it is not."""
        return None if self.current is None else stale_action(self.current.policies.degradation, self.age_s)

    async def wait_loaded(self) -> PolicySnapshot:
        """Waits, without limit, until there is a policy."""
        await self._loaded.wait()
        assert self.current is not None
        return self.current
