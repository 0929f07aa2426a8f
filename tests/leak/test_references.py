"""A memory that may be read does not name one that may not."""

import random
from typing import Any

import pytest

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, running_plane, write
from tests.leak.runner import policy_of
from tests.leak.words import Words
from tests.leak.world import TENANTS, World

PLACE = TENANTS[0]


async def superseded(plane: Plane) -> tuple[str, str]:
    """Ids of a FACT, and of the EPISODE of the same key that superseded it."""
    kinds = (memory_pb2.KIND_FACT, memory_pb2.KIND_EPISODE)
    told = ("Ann drinks tea", "Yesterday Ann went over to coffee")
    made = [
        (await write(plane, text, namespace=PLACE, kind=kind, fact_key="ann/drink")).memory.id
        for kind, text in zip(kinds, told, strict=True)
    ]
    return made[0], made[1]


async def shown(plane: Plane, memory_id: str, key: str) -> list[memory_pb2.Memory]:
    """The memory in every answer that may tell of it."""
    stub: Any = plane.stub
    one = await stub.GetMemory(pb.GetMemoryRequest(namespace=PLACE, id=memory_id), metadata=as_user(key))
    asked = pb.ListMemoriesRequest(namespace=PLACE, states=[memory_pb2.STATE_SUPERSEDED])
    page = await stub.ListMemories(asked, metadata=as_user(key))
    past = pb.ListMemoryVersionsRequest(namespace=PLACE, id=memory_id)
    history = await stub.ListMemoryVersions(past, metadata=as_user(key))
    return [one.memory, *page.memories, *(version.memory for version in history.versions)]


@pytest.mark.parametrize(("reader", "names_it"), [("dept-sales-facts", False), ("dept-sales-reader", True)])
async def test_what_superseded_a_memory_is_named_to_who_may_read_all(reader: str, names_it: bool) -> None:
    words = Words(random.Random(1))
    world = World(conditions=True, labels={root: words.marker() for root in TENANTS})
    caller = next(each for each in world.principals if each.name == reader)
    async with running_plane(policy=policy_of(world)) as plane:
        fact, episode = await superseded(plane)
        named = {memory.superseded_by_id for memory in await shown(plane, fact, caller.key)}
    assert (episode in named) is names_it
