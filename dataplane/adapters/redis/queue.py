"""The write queue on Redis Streams, for any number of data planes; see `queue_scripts` for how it is laid out.

What was accepted is as safe as the server's own log: with `appendonly yes` it survives the end of the process, and with
`appendfsync always` loss of power. A replica that is promoted may lack the last writes, for Redis copies late.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any
from zlib import crc32

from redis.exceptions import NoScriptError, OutOfMemoryError

from dataplane.adapters.handed_out import HandedOut
from dataplane.adapters.queue_limits import QUEUE_RANGES
from dataplane.adapters.redis import health
from dataplane.adapters.redis import queue_scripts as scripts
from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.options import RedisOptions
from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite
from dataplane.errors import Misconfigured, QueueFull
from dataplane.ports.backend import Examination, Problem
from memplane.options import check_ranges

BACKEND = "queue"
SET_ASIDE_KEPT = 1_000
REPLAY_PAGE = 100
"""Set-aside writes looked at and put back by one script. Unmeasured."""
POLL_S = 0.05
"""How often a waiting taker looks. Unmeasured."""

NO_APPEND_LOG = Problem(
    "NO_APPEND_LOG", "this Redis keeps no append-only file: queued writes are lost when it ends; set appendonly yes"
)
LOSES_WRITES = ("NO_APPEND_LOG", "EVICTION_ON")
"""Problems with which what was accepted is not safe."""

_Argument = str | bytes | int
_STREAM_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_FIELDS = ("operation", "principal", "namespace", "request", "time_us", "order_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisQueueOptions:
    """How much the queue holds, and for how long a taker. Raises BadConfig, naming the field.

    Attributes:
        max_entries: More are refused.
        retry_after_s: When those who were refused are told to try again.
        claim_after_s: What is taken and neither done nor renewed for so long is handed out again.
        must_persist: Refuse a server that keeps no append-only file, or evicts.
    """

    max_entries: int = 100_000
    retry_after_s: float = 1.0
    claim_after_s: float = 10.0
    must_persist: bool = True

    def __post_init__(self) -> None:
        check_ranges(self, QUEUE_RANGES)


class RedisWriteQueue:
    """A `ports.WriteQueue`. Made by `open`."""

    def __init__(self, connection: RedisConnection, options: RedisQueueOptions) -> None:
        self._connection = connection
        self._options = options
        self._turns = count()
        self._handed_out = HandedOut()
        # One hash tag: in a cluster the whole queue lies on one node, as its scripts need.
        lanes = [str(lane) for lane in range(scripts.LANES)]
        self._keys = [
            *(connection.key("{queue}", "lane", lane) for lane in lanes),
            *(connection.key("{queue}", "hold", lane) for lane in lanes),
            connection.key("{queue}", "operations"),
            connection.key("{queue}", "aside"),
        ]

    @classmethod
    async def open(cls, options: RedisOptions, queue: RedisQueueOptions, deadline_s: float) -> "RedisWriteQueue":
        """Connects. Raises Misconfigured or BackendUnavailable."""
        made = cls(await RedisConnection.open(options, BACKEND, deadline_s), queue)
        try:
            await made._check(deadline_s)
        except BaseException:
            await made.close()
            raise
        return made

    async def _check(self, deadline_s: float) -> None:
        found = await self.examine(deadline_s)
        losing = next((problem.message for problem in found.problems if problem.code in LOSES_WRITES), "")
        if self._options.must_persist and losing:
            raise Misconfigured(BACKEND, losing)

    async def close(self) -> None:
        """See the port."""
        await self._connection.close()

    async def examine(self, deadline_s: float) -> Examination:
        """See the port. Codes: those of `health`, and NO_APPEND_LOG."""
        async with self._connection.calling(deadline_s):
            found = await health.examine(self._connection)
            persistence = await self._connection.info("persistence")
        if str(persistence.get("aof_enabled", "1")) == "0":
            return replace(found, problems=(*found.problems, NO_APPEND_LOG))
        return found

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """See the port."""
        arguments: list[_Argument] = [_lane_of(write), self._options.max_entries, write.operation, *_fields_of(write)]
        try:
            accepted = await self._run(scripts.PUT, arguments, deadline_s)
        except OutOfMemoryError:
            accepted = 0
        if not accepted:
            raise QueueFull(self._options.retry_after_s)

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """See the port."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while True:
            entries = await self._take(owner, page_size, deadline_s)
            remaining_s = until_s - loop.time()
            if entries or remaining_s <= 0:
                return entries
            await asyncio.sleep(min(remaining_s, POLL_S))

    async def _take(self, owner: str, page_size: int, deadline_s: float) -> list[QueueEntry]:
        first_lane = next(self._turns) % scripts.LANES
        known = self._handed_out.known_to(owner)
        arguments: list[_Argument] = [scripts.GROUP, owner, page_size, self._claim_ms, first_lane, *known]
        rows = await self._run(scripts.TAKE, arguments, deadline_s)
        entries: list[QueueEntry] = []
        unreadable: list[str] = []
        for lane, stream_id, fields, deliveries in rows:
            entry_id = f"{lane}:{stream_id.decode()}"
            write = _write_of(fields)
            if write is None:
                unreadable.append(entry_id)
            else:
                entries.append(QueueEntry(entry_id, write, deliveries))
        if unreadable:
            await self._remove([(entry_id, "") for entry_id in unreadable], deadline_s, keeps=True)
        self._handed_out.note(owner, entries)
        return entries

    async def renew(self, owner: str, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        places = chain.from_iterable(_place(entry.entry_id) for entry in entries)
        await self._run(scripts.RENEW, [scripts.GROUP, owner, self._claim_ms, *places], deadline_s)

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        await self._remove([(entry.entry_id, entry.write.operation) for entry in entries], deadline_s, keeps=False)
        self._handed_out.forget(entries)

    async def set_aside(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        await self._remove([(entry.entry_id, entry.write.operation) for entry in entries], deadline_s, keeps=True)
        self._handed_out.forget(entries)

    async def set_aside_writes(self, after_id: str, page_size: int, deadline_s: float) -> list[SetAsideWrite]:
        """See the port."""
        above = f"({after_id}" if _STREAM_ID.fullmatch(after_id) else "-"
        rows = await self._run(scripts.LIST_ASIDE, [above, page_size], deadline_s)
        return [SetAsideWrite(entry_id.decode(), _write_of(fields)) for entry_id, fields in rows]

    async def replay_set_aside(self, entry_ids: Sequence[str], deadline_s: float) -> int:
        """See the port."""
        replayed, after_id, wanted = 0, "", set(entry_ids)
        while page := await self.set_aside_writes(after_id, REPLAY_PAGE, deadline_s):
            after_id = page[-1].entry_id
            arguments: list[_Argument] = []
            for each in page:
                if each.write is not None and (not wanted or each.entry_id in wanted):
                    arguments += [each.entry_id, _lane_of(each.write), each.write.operation]
            replayed += await self._run(scripts.REPLAY, arguments, deadline_s)
        return replayed

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """See the port."""
        fields = await self._run(scripts.FIND, [operation], deadline_s)
        return None if fields is None else _write_of(fields)

    async def depth(self, deadline_s: float) -> QueueDepth:
        """See the port. The oldest time is the server's."""
        entries, taken, aside, oldest = await self._run(scripts.DEPTH, [scripts.GROUP], deadline_s)
        times_us = [int(stream_id.split(b"-")[0]) * 1_000 for stream_id in oldest]
        return QueueDepth(max(0, entries - taken), taken, min(times_us, default=None), aside)

    @property
    def _claim_ms(self) -> int:
        return max(1, int(self._options.claim_after_s * 1_000))

    async def _remove(self, places: Sequence[tuple[str, str]], deadline_s: float, *, keeps: bool) -> None:
        arguments: list[_Argument] = [scripts.GROUP, int(keeps), SET_ASIDE_KEPT]
        for entry_id, operation in places:
            arguments += [*_place(entry_id), operation]
        await self._run(scripts.REMOVE, arguments, deadline_s)

    async def _run(self, script: str, arguments: Sequence[_Argument], deadline_s: float) -> Any:
        """Runs a script by its digest; raises OutOfMemoryError as it is."""
        client: Any = self._connection.client
        given = (len(self._keys), *self._keys, *arguments)
        full: OutOfMemoryError | None = None
        async with self._connection.calling(deadline_s):
            try:
                return await client.evalsha(hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest(), *given)
            except NoScriptError:
                return await client.eval(script, *given)
            except OutOfMemoryError as error:
                full = error
        raise full


def _lane_of(write: QueuedWrite) -> int:
    """All writes of one order key lie in one lane."""
    return crc32(write.order_key.encode()) % scripts.LANES


def _place(entry_id: str) -> list[str]:
    """Lane and id in the lane."""
    return entry_id.split(":", 1)


def _fields_of(write: QueuedWrite) -> list[_Argument]:
    """Names and values of an entry's fields."""
    values: tuple[_Argument, ...] = (
        write.operation,
        write.principal_id,
        write.namespace,
        write.request,
        write.time_us,
        write.order_key,
    )
    return list(chain.from_iterable(zip(_FIELDS, values, strict=True)))


def _write_of(fields: Sequence[bytes]) -> QueuedWrite | None:
    """The write of an entry's fields; None when they are none of ours."""
    by_name = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        operation, principal_id, namespace, request, time_us, order_key = (by_name[name.encode()] for name in _FIELDS)
        return QueuedWrite(
            operation.decode(), principal_id.decode(), namespace.decode(), request, int(time_us), order_key.decode()
        )
    except (KeyError, ValueError):
        return None
