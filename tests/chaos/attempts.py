"""Calls of one client: tried again as documented, each attempt written down.

A call is tried again after UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED where that is safe: reads, and what
has a request_id. It waits as long as the server asks, else longer each time, and goes to the next data plane.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import Message

from tests.chaos.calls import Answer, Connection, told_of_write
from tests.chaos.history import Entry, HistoryWriter
from tests.chaos.intents import Intent

ATTEMPTS = 4
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 3.0
RETRIED = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"})
CODES = {code.value[0]: code.name for code in grpc.StatusCode}
EVERYBODY = "everybody"
"""The subject of what all clients of a tenant write about."""


@dataclass(frozen=True, slots=True)
class Place:
    """Who a client is and where it writes: its own namespace, the tenant's common one, another tenant's."""

    client: int
    tenant: int
    own: str
    common: str
    foreign: str


@dataclass(slots=True)
class Call:
    """A request, what the history says of it, and whether it is safe to try again.

    `item` is the page of a list; `parts` are what a batch asks for.
    """

    request: Message
    method: str
    asked: dict[str, Any]
    is_safe: bool = True
    item: int = 0
    parts: Sequence[dict[str, Any]] = field(default_factory=tuple)


class Attempts:
    """Makes the calls of one client. `calls`: how many have ended, each with all its attempts."""

    def __init__(self, place: Place, connection: Connection, history: HistoryWriter):
        self.place = place
        self.calls = 0
        self._connection = connection
        self._history = history

    async def call(self, intent: Intent, call: Call) -> Answer:
        """The last attempt's answer."""
        answer = await self._try(intent, call)
        self.calls += 1
        return answer

    async def _try(self, intent: Intent, call: Call) -> Answer:
        pause_s = FIRST_PAUSE_S
        for attempt in range(ATTEMPTS):
            answer = await self._connection.attempt(call.request, intent.deadline_s)
            self._note(intent, call, attempt, answer)
            if answer.code not in RETRIED:
                return answer
            self._connection.fail_over()
            if not call.is_safe or attempt == ATTEMPTS - 1:
                break
            await asyncio.sleep(answer.pushback_s if answer.pushback_s is not None else pause_s)
            pause_s = min(3 * pause_s, LONGEST_PAUSE_S)
        return answer

    def _note(self, intent: Intent, call: Call, attempt: int, answer: Answer) -> None:
        if not call.parts:
            self._add(intent, call, attempt, answer, call.item)
            return
        for item, asked in enumerate(call.parts):
            part = Call(call.request, call.method, asked, item=item)
            self._add(intent, part, attempt, _part_of(answer, item), item)

    def _add(self, intent: Intent, call: Call, attempt: int, answer: Answer, item: int) -> None:
        self._history.add(
            Entry(
                client=self.place.client,
                tenant=self.place.tenant,
                intent=intent.index,
                method=call.method,
                start_s=answer.start_s,
                end_s=answer.end_s,
                item=item,
                attempt=attempt,
                deadline_s=intent.deadline_s,
                code=answer.code,
                asked=call.asked,
                told=answer.told,
            )
        )


def _part_of(answer: Answer, item: int) -> Answer:
    """What a batch's answer says of one of its writes."""
    if answer.response is None:
        return answer
    result = answer.response.results[item]
    if result.HasField("response"):
        told = answer.told | told_of_write(result.response)
        return Answer(answer.start_s, answer.end_s, "OK", result.response, told)
    return Answer(answer.start_s, answer.end_s, CODES[result.error.code], None, answer.told)
