"""Projections that were given up: listed, and tried again."""

from collections.abc import Sequence

from dataplane.changes import DeadLetter
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.caller import Caller
from dataplane.ports import RecordStore
from memplane.errors import InvalidField, Unavailable


class DeadLetters:
    """Lists them over all indexes by (position, index), and makes them due again."""

    def __init__(self, store: RecordStore):
        self._store = store

    async def page(
        self, prefix: str, after: tuple[int, str], page_size: int, caller: Caller, deadline_s: float
    ) -> list[DeadLetter]:
        """Those of the indexes whose names begin so, above (position, index); raises Unavailable.

        A change has one position in all indexes, so a page may end between two rows of one position.
        """
        caller.require("maintenance", None)
        after_position, after_index = after
        found: list[DeadLetter] = []
        try:
            for name in await self._names(deadline_s):
                if name.startswith(prefix):
                    above = after_position if name <= after_index else after_position - 1
                    found.extend(await self._store.dead_letters(name, above, page_size, deadline_s))
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        return sorted(found, key=lambda letter: (letter.position, letter.index))[:page_size]

    async def replay(self, index: str, positions: Sequence[int], caller: Caller, deadline_s: float) -> int:
        """How many are due again; raises InvalidField for an index that nobody follows, or Unavailable."""
        caller.require("maintenance", None)
        try:
            names = await self._names(deadline_s)
            if index not in names:
                raise InvalidField.one("index_name", f"names no index; there are: {', '.join(names) or 'none yet'}")
            return await self._store.replay_dead_letters(index, positions, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error

    async def _names(self, deadline_s: float) -> list[str]:
        return [item.index for item in await self._store.progress(deadline_s)]
