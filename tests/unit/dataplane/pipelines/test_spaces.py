import asyncio

import pytest

from dataplane.adapters.inmemory.vector_index import ActiveModel, InMemoryVectorIndex
from dataplane.pipelines.spaces import Spaces, VectorSpace
from tests.unit.dataplane.pipelines.model_parts import NamedEmbedder


def two_spaces(active: ActiveModel, *, is_alone: bool = True) -> Spaces:
    indexes = {model: InMemoryVectorIndex(8, model, active) for model in ("old", "new")}
    return Spaces(
        [VectorSpace(NamedEmbedder(model), index, None) for model, index in indexes.items()], is_alone=is_alone
    )


def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 5


async def test_the_configured_model_becomes_active_where_none_is() -> None:
    active = ActiveModel()
    spaces = two_spaces(active)
    await spaces.look(deadline_s())
    assert (active.name, spaces.current.model) == ("old", "old")


@pytest.mark.parametrize("known", ["new", "old"])
async def test_the_active_model_is_taken_into_use(known: str) -> None:
    active = ActiveModel()
    active.name = known
    spaces = two_spaces(active)
    await spaces.look(deadline_s())
    assert (active.name, spaces.current.model) == (known, known)


async def test_a_model_that_others_use_and_that_is_not_configured_is_told_of_until_they_do_not() -> None:
    active = ActiveModel()
    active.name = "elsewhere"
    spaces = two_spaces(active, is_alone=False)
    await spaces.look(deadline_s())
    assert (active.name, spaces.current.model) == ("elsewhere", "old")
    (problem,) = spaces.problems["embedder"]
    assert problem.code == "EMBEDDER_DIFFERS"
    assert "elsewhere" in problem.message
    active.name = "old"
    await spaces.look(deadline_s())
    assert spaces.problems == {}


async def test_who_is_alone_makes_the_configured_model_the_active_one() -> None:
    active = ActiveModel()
    active.name = "earlier"
    spaces = two_spaces(active)
    await spaces.look(deadline_s())
    assert (active.name, spaces.current.model, spaces.problems) == ("old", "old", {})
