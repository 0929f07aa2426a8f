"""The policy that this data plane serves from: one reference, swapped whole, read once per request."""

import asyncio
from enum import Enum

from memplane.errors import PolicyAbsence, PolicyNotLoaded
from memplane.policy.snapshot import PolicySnapshot


class PolicyOrigin(Enum):
    """Where the policy in `PolicyHolder.current` came from."""

    NONE = "none"
    CONTROL_PLANE = "control_plane"
    LAST_GOOD = "last_good"


class PolicyHolder:
    """What requests read; only the policy stream writes it. Belongs to one event loop.

    `current` is None until a policy was accepted: then nothing is allowed. `loaded_time_us` is when `current` was put
    here (0: never). `problem` tells why the newest attempt to load a policy failed; empty when it did not. `absence`
    tells callers why there is none, as long as there is none.
    """

    def __init__(self) -> None:
        self.current: PolicySnapshot | None = None
        self.origin = PolicyOrigin.NONE
        self.loaded_time_us = 0
        self.control_plane_connected = False
        self.problem = ""
        self.absence = PolicyAbsence.NOT_FETCHED
        self._loaded = asyncio.Event()

    def require(self) -> PolicySnapshot:
        """The policy in force. Raises PolicyNotLoaded, which tells why there is none."""
        if self.current is None:
            raise PolicyNotLoaded(self.absence)
        return self.current

    def swap(self, snapshot: PolicySnapshot, origin: PolicyOrigin, loaded_time_us: int) -> None:
        """Puts a checked snapshot in force for every request that starts from now on."""
        self.current = snapshot
        self.origin = origin
        self.loaded_time_us = loaded_time_us
        self.problem = ""
        self._loaded.set()

    def confirm(self, version: str, generation: int) -> None:
        """The control plane says what is in force; when `current` is that, nothing is wrong."""
        if self.current is not None and (self.current.version, self.current.generation) == (version, generation):
            self.origin = PolicyOrigin.CONTROL_PLANE
            self.problem = ""

    async def wait_loaded(self) -> PolicySnapshot:
        """Waits, without limit, until there is a policy."""
        await self._loaded.wait()
        assert self.current is not None
        return self.current
