"""A question that names a time finds what was told then. About 3 seconds."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.integration.harness import KEEP_ALL, Plane, running_plane, search, write

QUESTION = "what did we order for lunch last week"
PIZZA, NOODLES = "We ordered pizza for lunch", "We ordered noodles for lunch"


def at(month: int, day: int) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(datetime(2025, month, day, 12, tzinfo=UTC))
    return moment


async def nearness(plane: Plane, reference: Timestamp | None = None) -> dict[str, float]:
    """The signal of each hit, best first. The plane's clock stands on Thursday 9 October 2025."""
    await write(plane, PIZZA, event_time=at(9, 10))
    await write(plane, NOODLES, event_time=at(10, 1))
    found = await search(plane, QUESTION, reference_time=reference, explain=True)
    return {hit.memory.content: hit.signals.asked_time for hit in found.hits}


def policy(**asked_time: Any) -> Mapping[str, Any]:
    return {**KEEP_ALL, "retrieve_policy": {"asked_time": asked_time, "query_cache_ttl_s": 0}}


@pytest.mark.parametrize(
    ("reference", "order"), [(None, [NOODLES, PIZZA]), (at(10, 9), [NOODLES, PIZZA]), (at(9, 17), [PIZZA, NOODLES])]
)
async def test_what_was_told_in_the_time_asked_about_comes_first(reference: Timestamp | None, order: list[str]) -> None:
    async with running_plane(policy=policy(weight=1.0)) as plane:
        found = await nearness(plane, reference)
    assert list(found) == order
    assert found[order[0]] == 1.0 > found[order[1]]


async def test_as_a_filter_nothing_else_comes() -> None:
    async with running_plane(policy=policy(use="filter")) as plane:
        assert list(await nearness(plane)) == [NOODLES]


async def test_switched_off_it_is_not_read() -> None:
    async with running_plane(policy=policy(use="off")) as plane:
        assert set((await nearness(plane)).values()) == {0.0}
