import asyncio

import numpy as np

from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.model import EVERYTHING, Candidate
from tests.contract.index_suite import DIMENSION, A, deadline, entry, ids
from tests.unit.dataplane.adapters.qdrant.conftest import Opening


async def search(index: QdrantVectorIndex, dimension: int) -> list[Candidate]:
    return await index.search(A, np.eye(dimension, dtype=np.float32)[0], EVERYTHING, 10, 64, deadline())


async def test_before_the_first_activation_no_model_is_active(open_index: Opening) -> None:
    index = await open_index("a")
    assert await index.active_model(deadline()) == ""
    await index.activate(deadline())
    await index.activate(deadline())
    assert await index.active_model(deadline()) == "a"


async def test_a_model_is_replaced_while_searches_go_on(open_index: Opening) -> None:
    old, new = await open_index("a"), await open_index("b", 16)
    await old.activate(deadline())
    await old.upsert([entry("mem_1"), entry("mem_2")], deadline())

    vectors = np.eye(16, dtype=np.float32)
    building = asyncio.create_task(
        new.upsert([entry(f"mem_{at}", embedding=vectors[0]) for at in range(1, 1000)], deadline())
    )
    while not building.done():
        assert await old.active_model(deadline()) == "a"
        assert sorted(ids(await search(old, DIMENSION))) == ["mem_1", "mem_2"]
    await building

    await new.activate(deadline())
    assert {await each.active_model(deadline()) for each in (old, new)} == {"b"}
    assert len(await search(new, 16)) == 10
    assert len(await search(old, DIMENSION)) == 2
    await old.clear(deadline())
    assert (await old.count(deadline()), await new.count(deadline())) == (0, 999)
    await old.activate(deadline())
    assert await new.active_model(deadline()) == "a"


async def test_two_dimensions_of_one_model_lie_apart(open_index: Opening) -> None:
    small, large = await open_index("a", 8), await open_index("a", 16)
    await small.upsert([entry("mem_1")], deadline())
    assert (await small.count(deadline()), await large.count(deadline())) == (1, 0)


async def test_data_planes_that_open_at_once_agree(open_index: Opening) -> None:
    opened = await asyncio.gather(*(open_index("a") for _ in range(4)))
    await opened[0].upsert([entry("mem_1")], deadline())
    assert [await each.count(deadline()) for each in opened] == [1, 1, 1, 1]
    for each in opened:
        assert [problem.code for problem in (await each.examine(deadline())).problems] == ["ALIAS_MISSING"]
