"""The calls to an endpoint: texts in batches, a bounded number at once, with retries, within the deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from dataplane.adapters.embedder.batching import BACKEND
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.endpoint_wire import TryAgain
from dataplane.errors import BackendUnavailable
from dataplane.model import Vector

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0
"""Bounds of the random wait between attempts, doubling; a Retry-After of the endpoint is added to it. Unmeasured."""

Post = Callable[[Sequence[str]], Awaitable[list[Vector]]]
"""Makes one request. Raises TryAgain when it may go better later."""


class Traffic:
    """Sends texts by `post`; calls take turns batch by batch, so that a long one does not stand before a short one."""

    def __init__(self, options: EndpointOptions, post: Post) -> None:
        self._options = options
        self._post = post
        self._slots = asyncio.Semaphore(options.concurrency)
        self._backoff = wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)
        self._under_way = 0

    async def embed(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One vector a text. Raises BackendUnavailable: too much is under way, the endpoint failed, or it is too late.

        It is too late as soon as the next wait would end past the deadline; nothing is sent after it.
        """
        if self._under_way + len(texts) > self._options.max_waiting:
            raise BackendUnavailable(BACKEND, f"{self._under_way} texts wait already")
        self._under_way += len(texts)
        try:
            async with asyncio.timeout_at(deadline_s):
                return await self._send_all(texts, deadline_s)
        except TimeoutError as error:
            raise BackendUnavailable(BACKEND, "deadline passed") from error
        finally:
            self._under_way -= len(texts)

    async def _send_all(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        size = self._options.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        if len(batches) == 1:
            return await self._send(batches[0], deadline_s)
        found: list[list[Vector]] = [[] for _ in batches]
        left = iter(enumerate(batches))

        async def work() -> None:
            for place, batch in left:
                found[place] = await self._send(batch, deadline_s)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._options.concurrency, len(batches))):
                    group.create_task(work(), name="embed at endpoint")
        except ExceptionGroup as failures:  # The first one has ended the others.
            raise failures.exceptions[0] from None
        return [vector for vectors in found for vector in vectors]

    async def _send(self, batch: Sequence[str], deadline_s: float) -> list[Vector]:
        loop = asyncio.get_running_loop()

        def is_enough(state: RetryCallState) -> bool:
            return state.attempt_number > self._options.retries or loop.time() + state.upcoming_sleep >= deadline_s

        attempts = AsyncRetrying(
            retry=retry_if_exception_type(TryAgain), stop=is_enough, wait=self._wait_s, reraise=True
        )
        try:
            return await attempts(self._attempt, batch)
        except TryAgain as error:
            tried = attempts.statistics["attempt_number"]
            raise BackendUnavailable(BACKEND, f"{error.detail}; attempts: {tried}") from error

    async def _attempt(self, batch: Sequence[str]) -> list[Vector]:
        timeout_s = self._options.timeout_s
        async with self._slots:
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._post(batch)
            except TimeoutError as error:
                raise TryAgain(f"the endpoint did not answer within {timeout_s:g} s") from error

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return self._backoff(state) + (error.wait_s if isinstance(error, TryAgain) else 0.0)
