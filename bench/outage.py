"""`python -m bench.outage`: what searches cost while one store's network is silent, and how soon all is normal again.

PostgreSQL, Redis, Elasticsearch and the Qdrant peer run behind proxies, with two data planes and a control plane; one
data plane holds MEMORIES short memories and is asked distinct questions by CALLERS callers. Each store in turn:
HEALTHY_S as it is, OUTAGE_S with its network silent (everything is held back, connections stand), then RETURN_S with
its network back; told is when the first answer was whole again, with nothing degraded. `stores` may be named as
arguments.
"""

import asyncio
import math
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import grpc

from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.chaos.stack import Options, Stack, running

STORES = ("elasticsearch", "qdrant", "redis", "postgres")
MEMORIES = 500
CALLERS = 16
HEALTHY_S, OUTAGE_S, RETURN_S = 6.0, 10.0, 15.0
DEADLINE_S = 10.0
NAMESPACE = "tenant-0"
KEY = (("authorization", "Bearer mpk_key-of-tenant-0"),)


@dataclass
class Seen:
    """Searches of one stretch of time: seconds each, how they ended, and when."""

    seconds: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    whole_at_s: list[float] = field(default_factory=list)

    def quantile_ms(self, share: float) -> float:
        """A quantile of the times in milliseconds; NaN without any."""
        ordered = sorted(self.seconds)
        return ordered[math.ceil(share * len(ordered)) - 1] * 1_000 if ordered else math.nan


class Callers:
    """Ask without a pause until told to stop; what they see goes into `seen`."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._stub = MemoryServiceStub(self._channel)
        self._numbers = count()
        self.seen = Seen()

    async def load(self) -> None:
        """Writes the memories."""
        for start in range(0, MEMORIES, 100):
            requests = [
                pb.WriteMemoryRequest(namespace=NAMESPACE, content=f"Pump {number} stands in hall {number % 17}")
                for number in range(start, start + 100)
            ]
            batch = pb.BatchWriteMemoriesRequest(requests=requests)
            await self._stub.BatchWriteMemories(batch, metadata=KEY, timeout=60)

    async def during(self, seconds: float) -> Seen:
        """What is seen in so many seconds; calls that began in them are waited for."""
        self.seen = Seen()
        until_s = _now_s() + seconds
        await asyncio.gather(*(self._ask_until(until_s) for _ in range(CALLERS)))
        return self.seen

    async def close(self) -> None:
        """Hangs up."""
        await self._channel.close()

    async def _ask_until(self, until_s: float) -> None:
        while _now_s() < until_s:
            await self._ask()

    async def _ask(self) -> None:
        number, begun_s = next(self._numbers), _now_s()
        request = pb.SearchMemoriesRequest(namespace=NAMESPACE, query=f"where does pump {number} stand?")
        try:
            answer = await self._stub.SearchMemories(request, metadata=KEY, timeout=DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            end = error.code().name
            await asyncio.sleep(0.05)  # a client that was refused waits
        else:
            end = " + ".join(sorted({f"without {note.backend}" for note in answer.degraded})) or "whole"
        self.seen.seconds.append(_now_s() - begun_s)
        self.seen.ends[end] += 1
        if end == "whole":
            self.seen.whole_at_s.append(_now_s())


async def measure(stack: Stack, callers: Callers, store: str) -> None:
    """One store's outage, as a row."""
    healthy = await callers.during(HEALTHY_S)
    await stack.proxies[store].blackhole()
    outage = await callers.during(OUTAGE_S)
    returned_s = _now_s()
    await stack.proxies[store].heal()
    after = await callers.during(RETURN_S)
    back_s = after.whole_at_s[0] - returned_s if after.whole_at_s else math.nan
    ratio = len(outage.seconds) / len(healthy.seconds)
    _say(
        f"{store:14} healthy {len(healthy.seconds) / HEALTHY_S:6.0f}/s p99 {healthy.quantile_ms(0.99):6.0f} ms | "
        f"silent {len(outage.seconds) / OUTAGE_S:6.0f}/s ({ratio * HEALTHY_S / OUTAGE_S:4.0%}) p50 "
        f"{outage.quantile_ms(0.5):5.0f} p99 {outage.quantile_ms(0.99):6.0f} longest {outage.quantile_ms(1):6.0f} ms "
        f"{dict(outage.ends)} | first whole answer {back_s:.2f} s after its return, then {dict(after.ends)}"
    )


async def run(stores: Sequence[str]) -> None:
    """Starts everything and measures."""
    _say(f"{platform.platform()}, Python {platform.python_version()}; {MEMORIES} memories, {CALLERS} callers")
    with tempfile.TemporaryDirectory() as folder:
        async with running(Options("company", Path(folder), "redis")) as stack:
            callers = Callers(stack.planes[0].address)
            try:
                await callers.load()
                await callers.during(3.0)  # warm
                for store in stores:
                    await measure(stack, callers, store)
            finally:
                await callers.close()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1:] or STORES))
