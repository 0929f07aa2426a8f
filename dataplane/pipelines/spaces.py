"""Which embedding model searches and writes use: one at a time, taken once a call, switched while calls go on.

A model change builds the next model's index beside the active one. When it is level it is activated, and every process
learns that by asking its index; calls that began before finish with the model they began with.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.logic.gate_model import GateModel
from dataplane.ports import Embedder, Problem, VectorIndex

log = logging.getLogger("memplane.spaces")

BACKEND = "embedder"
LOOK_INTERVAL_S = 2.0
"""How often a process with several models asks which one is active. Unmeasured."""
LOOK_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """An embedding model with what belongs to it. `gate_model` None: none was trained on it, the rules decide alone."""

    embedder: Embedder
    vectors: VectorIndex
    gate_model: GateModel | None

    @property
    def model(self) -> str:
        """The embedding model's name."""
        return self.embedder.model


class Spaces:
    """The spaces that this process can use; `current` is the one in use.

    `is_alone`: no other process uses the indexes. `problems` has what is wrong, by backend.
    """

    def __init__(self, spaces: Sequence[VectorSpace], *, is_alone: bool = True):
        self.current = spaces[0]
        self.problems: dict[str, tuple[Problem, ...]] = {}
        self._alone = is_alone
        self._spaces = {space.model: space for space in spaces}
        self._task: asyncio.Task[None] | None = None

    @property
    def all(self) -> tuple[VectorSpace, ...]:
        """Every space, the configured one first."""
        return tuple(self._spaces.values())

    def over(self, spaces: Sequence[VectorSpace]) -> "Spaces":
        """The same with other spaces, in the same order; to be made before this one is started."""
        return Spaces(spaces, is_alone=self._alone)

    async def start(self) -> None:
        """Looks once, and again until it is known, and always where others may switch or there is something to."""
        if not await self._look_or_wait() or len(self._spaces) > 1 or not self._alone:
            self._task = asyncio.create_task(self._run(), name="spaces")

    async def stop(self) -> None:
        """Ends looking."""
        if self._task is not None:
            await end(self._task)

    async def look(self, deadline_s: float) -> None:
        """Takes the active model's space into use, when this process has it; raises BackendUnavailable.

        The configured model becomes the active one where none is yet, and where nobody else uses the indexes.
        """
        model = await self.current.vectors.active_model(deadline_s)
        active = self._spaces.get(model)
        if not model or (active is None and self._alone):
            await self.all[0].vectors.activate(deadline_s)
            active = self.all[0]
        self._tell_of(model if active is None else "")
        if active is not None and active is not self.current:
            log.info("embedding model %s is active now, in place of %s", active.model, self.current.model)
            self.current = active

    def _tell_of(self, foreign: str) -> None:
        if not foreign:
            self.problems.pop(BACKEND, None)
            return
        told = (
            f"searches elsewhere use embeddings of {foreign}, this data plane those of {self.current.model}; configure"
            " the same [embedder] everywhere, or switch: memplane indexes rebuild"
        )
        if BACKEND not in self.problems:
            log.warning("%s", told)
        self.problems[BACKEND] = (Problem("EMBEDDER_DIFFERS", told),)

    async def _run(self) -> None:
        is_known = False
        while not is_known or len(self._spaces) > 1 or not self._alone:
            await asyncio.sleep(LOOK_INTERVAL_S)
            is_known = await self._look_or_wait()

    async def _look_or_wait(self) -> bool:
        """Whether it was answered."""
        try:
            await self.look(asyncio.get_running_loop().time() + LOOK_TIMEOUT_S)
        except BackendUnavailable as error:
            log.debug("the active embedding model is not known: %s", error)
            return False
        return True
