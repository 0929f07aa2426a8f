import asyncio
import threading
from collections.abc import Callable

import numpy as np
import pytest

from dataplane.adapters.embedder.batching import BATCH_CHARACTERS, Lane
from dataplane.errors import BackendUnavailable
from dataplane.model import Vector


def encode(texts: list[str]) -> list[Vector]:
    return [np.array([len(text)], dtype=np.float32) for text in texts]


class Gate:
    """An `encode` that waits until it is let go, and remembers the order of texts."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.entered = threading.Event()
        self.go = threading.Event()

    def __call__(self, texts: list[str]) -> list[Vector]:
        self.seen.extend(texts)
        self.entered.set()
        assert self.go.wait(10)
        return encode(texts)


def deadline(seconds: float = 10) -> float:
    return asyncio.get_running_loop().time() + seconds


async def entered(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.entered.wait, 10)


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_vectors_come_in_the_order_of_texts() -> None:
    lane = Lane(encode, threads=3, max_waiting=1000)
    texts = ["x" * (1 + number % 90) for number in range(200)]
    vectors = await lane.embed(texts, deadline())
    assert [int(vector[0]) for vector in vectors] == [len(text) for text in texts]
    assert await lane.embed([], deadline()) == []
    await lane.close()


async def test_requests_take_turns(gate: Gate) -> None:
    lane = Lane(gate, threads=1, max_waiting=1000)
    large = [f"{number}".rjust(BATCH_CHARACTERS) for number in range(4)]
    bulk = asyncio.create_task(lane.embed(large, deadline()))
    await entered(gate)
    single = asyncio.create_task(lane.embed(["single"], deadline()))
    await asyncio.sleep(0)
    gate.go.set()
    await asyncio.gather(bulk, single)
    assert gate.seen.index("single") <= 2
    await lane.close()


async def test_more_than_may_wait_is_refused(gate: Gate) -> None:
    lane = Lane(gate, threads=1, max_waiting=2)
    running = asyncio.create_task(lane.embed(["a"], deadline()))
    await entered(gate)
    waiting = asyncio.create_task(lane.embed(["b", "c"], deadline()))
    await asyncio.sleep(0)
    with pytest.raises(BackendUnavailable, match="embedder"):
        await lane.embed(["d"], deadline())
    gate.go.set()
    await asyncio.gather(running, waiting)
    await lane.embed(["d"], deadline())
    await lane.close()


async def test_past_the_deadline_is_unavailable_and_frees_the_queue(gate: Gate) -> None:
    lane = Lane(gate, threads=1, max_waiting=1)
    running = asyncio.create_task(lane.embed(["a"], deadline()))
    await entered(gate)
    for _ in range(3):
        with pytest.raises(BackendUnavailable, match="deadline"):
            await lane.embed(["late"], deadline(0.001))
    gate.go.set()
    await running
    assert gate.seen == ["a"]
    await lane.close()


async def test_a_cancelled_request_is_not_worked_on(gate: Gate) -> None:
    lane = Lane(gate, threads=1, max_waiting=10)
    running = asyncio.create_task(lane.embed(["a"], deadline()))
    await entered(gate)
    cancelled = asyncio.create_task(lane.embed(["never"], deadline()))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    gate.go.set()
    await running
    assert gate.seen == ["a"]
    await lane.close()


async def test_a_failure_of_the_engine_is_unavailable_and_the_lane_lives_on() -> None:
    def fail_once() -> Callable[[list[str]], list[Vector]]:
        calls = iter([True])

        def work(texts: list[str]) -> list[Vector]:
            if next(calls, False):
                raise RuntimeError("broken")
            return encode(texts)

        return work

    lane = Lane(fail_once(), threads=1, max_waiting=10)
    with pytest.raises(BackendUnavailable, match="broken"):
        await lane.embed(["a"], deadline())
    assert len(await lane.embed(["a"], deadline())) == 1
    await lane.close()


async def test_closing_refuses_what_waits(gate: Gate) -> None:
    lane = Lane(gate, threads=1, max_waiting=10)
    running = asyncio.create_task(lane.embed(["a"], deadline()))
    await entered(gate)
    waiting = asyncio.create_task(lane.embed(["b"], deadline()))
    await asyncio.sleep(0)
    gate.go.set()
    await lane.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await waiting
    await running
    with pytest.raises(BackendUnavailable, match="closed"):
        await lane.embed(["c"], deadline())
    await lane.close()
