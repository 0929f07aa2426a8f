"""Keeps the keys that tokens are checked with current, and the old ones while their source is down.

Rules:
1. The source is looked at every `poll_s`, and at once when a token names an unknown key, but then at most once in
   LOOK_AGAIN_S, and once for all that ask meanwhile.
2. What cannot be read, or is no key set, changes nothing: tokens are checked with the keys that are there.
3. A key that is gone from the source verifies nothing any more.
"""

import asyncio
import logging
from collections.abc import Callable

from memplane.authentication.key_set import BadKeySet, KeySet, read_key_set
from memplane.authentication.key_sources import KeySource, SourceFailed

log = logging.getLogger("memplane.authentication.keys")

LOOK_AGAIN_S = 5.0
"""An unknown key is looked for at most so often. Unmeasured."""
RETRY_S = 5.0
"""After a failure the source is looked at again so soon, or after `poll_s` if that is less. Unmeasured."""


class TokenKeys:
    """`current` None: no key was ever read. `problem` tells why the last look failed; empty: it did not.

    `generation` counts the changes of `current`. `now_s` is a monotonic clock.
    """

    def __init__(self, source: KeySource, now_s: Callable[[], float]):
        self.current: KeySet | None = None
        self.generation = 0
        self.problem = ""
        self._source = source
        self._now_s = now_s
        self._looked_for_s = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Reads the source; what goes wrong is kept in `problem`, and logged when it is new."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="token-keys")
        await asyncio.shield(self._looking)

    async def look_for(self, kid: str) -> None:
        """Waits for a look at the source when the key is not known and it was not looked for one just now."""
        if self.current is not None and (not kid or self.current.has(kid)):
            return
        if self._looking is None:
            if self._now_s() - self._looked_for_s < LOOK_AGAIN_S:
                return
            self._looked_for_s = self._now_s()
        await self.look()

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(min(RETRY_S, self._source.poll_s) if self.problem else self._source.poll_s)
            await self.look()

    async def _look(self) -> None:
        try:
            data = await self._source.read()
            if data is not None:
                self._take(read_key_set(data))
        except (SourceFailed, BadKeySet) as error:
            self._note(str(error))
        except Exception as error:  # noqa: BLE001 - the loop must live on: logged, told as a problem, tried again
            self._note(f"{type(error).__name__}: {error}")
        finally:
            self._looking = None

    def _take(self, found: KeySet) -> None:
        self.current = found
        self.generation += 1
        self.problem = ""
        log.info("tokens are checked with %d keys", len(found))

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("the keys of tokens are not read, the old ones stay: %s", problem)
        self.problem = problem
