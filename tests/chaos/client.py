"""One client: carries out its intents one after another."""

from collections.abc import Callable, Sequence

from tests.chaos.attempts import Attempts
from tests.chaos.intents import Intent
from tests.chaos.knowledge import Knowledge, Known
from tests.chaos.reading import Reading
from tests.chaos.writing import Writing


class Client:
    """Does one thing at a time; `foreign` is what a client of another tenant knows."""

    def __init__(self, attempts: Attempts, knowledge: Knowledge, foreign: Callable[[], Sequence[Known]]):
        self._does = {**Writing(attempts, knowledge).does, **Reading(attempts, knowledge, foreign).does}

    async def carry_out(self, intent: Intent) -> None:
        """Does what is wanted, if the client knows a memory to do it with."""
        await self._does[intent.kind](intent)
