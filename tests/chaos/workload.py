"""All clients of a run at once, and what is there when it is over."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.attempts import Attempts, Place
from tests.chaos.calls import Connection
from tests.chaos.client import Client
from tests.chaos.history import Entry, HistoryWriter
from tests.chaos.intents import intents
from tests.chaos.knowledge import Knowledge

TICK_S = 0.05
LAG_S = 0.1
"""The harness notes when it was held up for this long: its own fault, not the service's."""


class Workload:
    """`clients` clients, seven at least, until they are told to stop.

    `api_keys`: key of each tenant by the tenant's namespace, in the order of their numbers. `pause_s` is slept between
    any two intents of a client. Whoever made it closes `history` and may add faults to it.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        api_keys: Mapping[str, str],
        seed: int,
        clients: int,
        history_path: Path,
        pause_s: float = 0.0,
    ):
        self._addresses, self._api_keys = addresses, api_keys
        self._seed, self._pause_s = seed, pause_s
        self.history = HistoryWriter(history_path)
        self._knowledge = [Knowledge() for _ in range(clients)]
        self._attempts: list[Attempts] = []

    @property
    def operations(self) -> int:
        """Calls ended so far: one is one RPC with all its attempts, whatever a batch holds."""
        return sum(each.calls for each in self._attempts)

    async def run(self, until: asyncio.Event) -> None:
        """Works until the event is set and every call in flight was answered."""
        lags = asyncio.ensure_future(self._note_lags())
        try:
            await asyncio.gather(*(self._run_client(number, until) for number in range(len(self._knowledge))))
        finally:
            lags.cancel()
            await asyncio.gather(lags, return_exceptions=True)
            self.history.flush()

    async def _run_client(self, number: int, until: asyncio.Event) -> None:
        place = self._place(number)
        connection = Connection(self._addresses, list(self._api_keys.values())[place.tenant], number)
        attempts = Attempts(place, connection, self.history)
        self._attempts.append(attempts)
        foreign = self._foreign(number)
        client = Client(attempts, self._knowledge[number], lambda: foreign.own)
        for intent in intents(self._seed, number):
            if until.is_set():
                break
            await client.carry_out(intent)
            await asyncio.sleep(self._pause_s)
        await connection.close()

    def _place(self, number: int) -> Place:
        tenants = list(self._api_keys)
        tenant = self._tenant(number)
        other = tenants[(tenant + 1) % len(tenants)]
        name = tenants[tenant]
        return Place(number, tenant, f"{name}.c{number:02d}", f"{name}.common", f"{other}.common")

    def _tenant(self, number: int) -> int:
        """Two of three clients are the first tenant's, so that many write the same facts; the others are dealt."""
        return 0 if number % 3 else 1 + number // 3 % (len(self._api_keys) - 1)

    def _foreign(self, number: int) -> Knowledge:
        """What a client of the next tenant knows."""
        tenant = (self._tenant(number) + 1) % len(self._api_keys)
        others = [other for other in range(len(self._knowledge)) if self._tenant(other) == tenant]
        return self._knowledge[others[number % len(others)]]

    async def _note_lags(self) -> None:
        while True:
            begun_s = time.monotonic()
            await asyncio.sleep(TICK_S)
            now_s = time.monotonic()
            if now_s - begun_s > LAG_S + TICK_S:
                self.history.add(
                    Entry(client=-1, tenant=-1, intent=0, method="lag", start_s=begun_s + TICK_S, end_s=now_s)
                )
