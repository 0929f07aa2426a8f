""" "Not yours" takes as long as "not there"."""

import random
from collections.abc import Sequence
from statistics import median
from time import perf_counter

import grpc
import pytest

from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import as_user, running_plane, write
from tests.leak.runner import policy_of
from tests.leak.words import Words
from tests.leak.world import TENANTS, World

PAIRS = 200
NOISE = 0.1
"""Medians may differ by so much of the time that a call takes."""


async def seconds_of(stub: object, request: pb.GetMemoryRequest, key: str) -> float:
    begun_s = perf_counter()
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.GetMemory(request, metadata=as_user(key))  # type: ignore[attr-defined]  # the stub's own type is async
    return perf_counter() - begun_s


def slower_share(there: Sequence[float], nowhere: Sequence[float]) -> float:
    """In which part of the pairs the first was slower."""
    return sum(one > other for one, other in zip(there, nowhere, strict=True)) / len(there)


@pytest.mark.alone
@pytest.mark.parametrize("namespace", [f"{TENANTS[0]}.x", TENANTS[1]])
async def test_a_memory_of_others_takes_as_long_as_one_that_never_was(namespace: str) -> None:
    draw = random.Random(1)
    words = Words(draw)
    world = World(conditions=False, labels={root: words.marker() for root in TENANTS})
    reader = next(each for each in world.principals if each.name == "dept-sales-reader")
    async with running_plane(policy=policy_of(world)) as plane:
        others = [(await write(plane, words.marker(), namespace=TENANTS[1])).memory.id for _ in range(20)]
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(PAIRS):
            for is_there in draw.sample((True, False), 2):
                memory_id = draw.choice(others) if is_there else words.memory_id()
                request = pb.GetMemoryRequest(namespace=namespace, id=memory_id)
                times[is_there].append(await seconds_of(plane.stub, request, reader.key))
    apart = abs(median(times[True]) - median(times[False])) / median(times[False])
    share = slower_share(times[True], times[False])
    assert apart < NOISE or 0.3 < share < 0.7, f"medians differ by {apart:.0%}, the first is slower in {share:.0%}"
