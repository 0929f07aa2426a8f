import asyncio
import io
import json
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.embed import embed
from dataplane.errors import BackendUnavailable
from memplane.settings import BadConfig
from tests.contract.embedding_server import MODEL, serving, status


async def answers(settings: dict[str, Any], *texts: tuple[str, str]) -> list[dict[str, Any]]:
    out = io.StringIO()
    await embed([json.dumps(settings), *(json.dumps({"as": kind, "text": text}) for kind, text in texts)], out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def test_an_endpoint_embeds_texts_in_order_and_says_its_dimension() -> None:
    texts = [("question", "who?"), *(("passage", f"text {n}") for n in range(300)), ("question", "where?")]
    async with serving() as server:
        head, *rows = await answers(
            {"embedder": "endpoint", "url": server.url, "model": MODEL, "query_prefix": "query: "}, *texts
        )
    assert head["dimension"] == 384
    assert head["model"].startswith("endpoint:hash@384+")
    sent = [f"query: {text}" if kind == "question" else text for kind, text in texts]
    expected = await HashEmbedder().embed_passages(sent, asyncio.get_running_loop().time() + 9)
    got = [np.frombuffer(b64decode(row["vector"]), dtype="<f4") for row in rows]
    np.testing.assert_allclose(got, expected, atol=1e-6)


async def test_without_texts_it_says_the_model() -> None:
    assert await answers({"embedder": "hash"}) == [{"model": "hash-384", "dimension": 384}]


async def test_another_dimension_is_an_error() -> None:
    async with serving() as server:
        with pytest.raises(BackendUnavailable, match="384 dimensions, the setting says 3"):
            await answers(
                {"embedder": "endpoint", "url": server.url, "model": MODEL, "dimension": 3}, ("question", "who?")
            )


async def test_an_endpoint_that_fails_is_an_error() -> None:
    async with serving() as server:
        server.script.extend([status(503)] * 2)
        with pytest.raises(BackendUnavailable, match="503"):
            await answers({"embedder": "endpoint", "url": server.url, "model": MODEL, "retries": 1})


async def test_a_wrong_url_is_an_error() -> None:
    with pytest.raises(BadConfig, match="url: 'host'"):
        await answers({"embedder": "endpoint", "url": "host", "model": MODEL})
