"""What is in force at this control plane, kept level with the revision store, which other control planes may share."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from controlplane.compiler import Compiler
from controlplane.diagnose import Diagnostic
from controlplane.fleet import Fleet
from controlplane.revisions import ApiKeyRecord, Change, Head, Outrun, Revision, RevisionStore
from controlplane.snapshots import InForce, SnapshotBuilder, Snapshots
from memplane.errors import Overloaded, Unavailable

log = logging.getLogger("memplane.controlplane.standing")

FOLLOW_S = 0.5
"""How often the store is asked for generations of other control planes: one indexed row each time."""
MAX_ATTEMPTS = 10
"""How often a change starts again because another control plane was first. Unmeasured."""

_T = TypeVar("_T")


class Clock(Protocol):
    """The time of day, so that tests own it."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a control plane's policy is kept with.

    `holder` names this control plane among those that share the store. `policy_folder` None: there is no policy folder.
    """

    store: RevisionStore
    compiler: Compiler
    builder: SnapshotBuilder
    snapshots: Snapshots
    fleet: Fleet
    clock: Clock
    holder: str
    policy_folder: Path | None


class Standing:
    """The policy in force here; it changes in `in_turn` alone.

    `newest` is the newest generation seen in the store, `etag` that of its revision, `api_keys` are the keys beside it.
    It is in force here unless `problem` tells why not. `fault_count` counts unexpected faults.
    """

    def __init__(self, parts: Parts):
        self._parts = parts
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self.newest = 0
        self.etag = ""
        self.api_keys: tuple[ApiKeyRecord, ...] = ()
        self.problem = ""
        self.fault_count = 0

    async def in_turn(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Runs `attempt` with nothing else under way here and the newest revision of the store in force.

        When another control plane outruns it, it starts again on top of that one's. A caller that goes away does not
        stop it half way. Raises Overloaded when it is outrun again and again.
        """
        task = asyncio.create_task(self._attempts(attempt))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _attempts(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        async with self._turn:
            for _ in range(MAX_ATTEMPTS):
                await self.catch_up()
                try:
                    return await attempt()
                except Outrun as outrun:
                    log.info("generation %d of another control plane came first: starting again", outrun.newest)
        raise Overloaded("other control planes change the policy again and again")

    async def drain(self) -> None:
        """Waits for what is running."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def catch_up(self) -> None:
        """Puts the newest revision of the store in force, if it is not; to be called at the start and in a turn.

        One that this build refuses is logged, once, and what was in force stays.
        """
        if await self._parts.store.newest() == self.newest:
            return
        head = await self._parts.store.head()
        if head.revision is None:
            return
        in_force = await self._built(head, head.revision)
        self._note(head.revision, head.api_keys)
        if in_force is not None:
            self._swap(in_force)

    async def take(self, change: Change, in_force: InForce) -> None:
        """Stores a revision with what belongs to it, then puts it in force. Raises what the store raises."""
        await self._parts.store.write(change)
        self._note(in_force.revision, in_force.api_keys)
        self._swap(in_force)

    async def follow(self) -> None:
        """Catches up with other control planes until cancelled."""
        while True:
            await asyncio.sleep(FOLLOW_S)
            try:
                if await self._parts.store.newest() != self.newest:
                    async with self._turn:
                        await self.catch_up()
            except Unavailable:  # the store has logged it
                continue
            except Exception:
                self.fault_count += 1
                log.exception("following the revision store failed and goes on")

    async def _built(self, head: Head, revision: Revision) -> InForce | None:
        compiled = await self._parts.compiler.compile(revision.documents, with_cases=False)
        if compiled.policy is None:
            self.problem = f"revision {revision.generation} does not compile: {_first_words(compiled.errors)}"
            log.error("%s", self.problem)
            return None
        return await asyncio.to_thread(self._parts.builder.build, revision, compiled, head.api_keys)

    def _note(self, revision: Revision, api_keys: tuple[ApiKeyRecord, ...]) -> None:
        self.newest, self.etag, self.api_keys = revision.generation, revision.etag, api_keys

    def _swap(self, in_force: InForce) -> None:
        self.problem = ""
        self._parts.snapshots.current = in_force
        self._parts.fleet.publish(in_force.target)
        log.info("policy generation %d is in force (%s)", in_force.revision.generation, in_force.revision.version)


def _first_words(errors: Sequence[Diagnostic]) -> str:
    return f"{errors[0].file}:{errors[0].line}: {errors[0].message}" if errors else "no diagnostic"
