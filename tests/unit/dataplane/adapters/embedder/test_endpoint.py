import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dataplane.adapters.embedder.endpoint import EndpointEmbedder, measure_dimension
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.settings import BadConfig, Secret
from tests.contract.embedding_server import MODEL, Answer, EmbeddingServer, changed, drop, hang, serving, status

KEY = Secret("sk-very-secret")
SECRET_TEXT = "Olga's door code is 4711"
Embedders = Callable[..., EndpointEmbedder]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with serving() as running:
        yield running


@pytest.fixture
async def embedders(server: EmbeddingServer) -> AsyncIterator[Embedders]:
    made: list[EndpointEmbedder] = []

    def make(**changes: Any) -> EndpointEmbedder:
        options = EndpointOptions(server.url, MODEL, dimension=384, api_key=KEY, timeout_s=5, batch_size=2)
        made.append(EndpointEmbedder.open(replace(options, **changes)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


def deadline(seconds: float = 20) -> float:
    return asyncio.get_running_loop().time() + seconds


def other_tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("embed at")}


async def test_texts_go_out_in_batches_and_come_back_in_order(server: EmbeddingServer, embedders: Embedders) -> None:
    texts = [f"text {number} of seven" for number in range(7)]
    got = await embedders().embed_passages(texts, deadline())
    np.testing.assert_allclose(got, await HashEmbedder().embed_passages(texts, deadline()), atol=1e-6)
    assert sorted(len(body["input"]) for body in server.asked) == [1, 2, 2, 2]


async def test_vectors_are_told_apart_by_their_index(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.append(changed(lambda data: data[::-1]))
    got = await embedders().embed_passages(["one", "two"], deadline())
    np.testing.assert_allclose(got, await HashEmbedder().embed_passages(["one", "two"], deadline()), atol=1e-6)


async def test_questions_and_memories_get_their_prefix(server: EmbeddingServer, embedders: Embedders) -> None:
    embedder = embedders(query_prefix="query: ", passage_prefix="passage: ")
    await embedder.embed_queries(["who?"], deadline())
    await embedder.embed_passages(["Olga"], deadline())
    assert [body["input"] for body in server.asked] == [["query: who?"], ["passage: Olga"]]


async def test_the_key_is_sent_as_bearer_token_where_there_is_one(
    server: EmbeddingServer, embedders: Embedders
) -> None:
    await embedders().check(deadline())
    await embedders(api_key=None).check(deadline())
    assert [sent.get("authorization") for sent in server.headers] == [f"Bearer {KEY}", None]


async def test_an_empty_text_is_sent_as_a_space(server: EmbeddingServer, embedders: Embedders) -> None:
    await embedders().embed_passages([""], deadline())
    assert server.asked[0]["input"] == [" "]


async def test_long_texts_are_cut_by_their_tokens(server: EmbeddingServer, embedders: Embedders) -> None:
    embedder = embedders(max_tokens=100)
    await embedder.embed_passages(["word " * 50_000, "我喜欢喝茶" * 10_000], deadline())
    assert [embedder.count_tokens(text) <= 100 for text in server.asked[0]["input"]] == [True, True]
    assert min(embedder.count_tokens(text) for text in server.asked[0]["input"]) > 70


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again(server: EmbeddingServer, embedders: Embedders, code: int) -> None:
    server.script.extend([status(code, "busy"), status(code, "busy")])
    assert len(await embedders().embed_queries(["who?"], deadline())) == 1
    assert len(server.asked) == 3


async def test_a_broken_connection_is_tried_again(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.append(drop)
    assert len(await embedders().embed_queries(["who?"], deadline())) == 1
    assert len(server.asked) == 2


async def test_retry_after_is_waited_for(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.append(status(429, {}, retry_after="0.4"))
    start = asyncio.get_running_loop().time()
    await embedders().embed_queries(["who?"], deadline())
    assert asyncio.get_running_loop().time() - start >= 0.4


async def test_a_retry_after_beyond_the_deadline_fails_at_once(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.append(status(429, {"error": {"code": "rate_limit_exceeded"}}, retry_after="60"))
    start = asyncio.get_running_loop().time()
    with pytest.raises(BackendUnavailable, match=r"429 \(rate_limit_exceeded\); attempts: 1"):
        await embedders().embed_queries(["who?"], deadline(5))
    assert asyncio.get_running_loop().time() - start < 1


async def test_retries_end(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.extend([status(503)] * 9)
    with pytest.raises(BackendUnavailable, match="503; attempts: 3"):
        await embedders(retries=2).embed_queries(["who?"], deadline())
    assert len(server.asked) == 3


async def test_a_hanging_endpoint_holds_nobody_beyond_the_deadline(
    server: EmbeddingServer, embedders: Embedders
) -> None:
    server.script.extend([hang] * 5)
    start = asyncio.get_running_loop().time()
    with pytest.raises(BackendUnavailable, match="deadline passed"):
        await embedders().embed_passages(["a text"] * 9, deadline(2))
    assert asyncio.get_running_loop().time() - start == pytest.approx(2, rel=0.1)
    assert other_tasks() == set()


async def test_a_request_that_hangs_is_given_up_and_made_again(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.append(hang)
    assert len(await embedders(timeout_s=0.2).embed_queries(["who?"], deadline())) == 1
    server.script.append(hang)
    with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.2 s; attempts: 1"):
        await embedders(timeout_s=0.2, retries=0).embed_queries(["who?"], deadline())


def replaced(embedding: object) -> Answer:
    return changed(lambda data: [{**row, "embedding": embedding} for row in data])


WRONG_ANSWERS = {
    "fewer vectors": (changed(lambda data: data[:1]), "1 vectors for 2 texts"),
    "an index twice": (changed(lambda data: [{**row, "index": 0} for row in data]), "numbers its vectors wrongly"),
    "an index beyond": (changed(lambda data: [{**row, "index": 7} for row in data]), "numbers its vectors wrongly"),
    "a text as index": (changed(lambda data: [{**row, "index": "0"} for row in data]), "numbers its vectors wrongly"),
    "another dimension": (replaced([1.0] * 768), "have 768 dimensions, the setting says 384"),
    "NaN": (replaced([float("nan")] * 384), "not finite"),
    "null": (replaced([None] * 384), "not finite"),
    "infinity": (replaced([float("inf")] * 384), "not finite"),
    "zeros": (replaced([0.0] * 384), "a vector of zeros"),
    "base64": (replaced("AAAA"), "no list of numbers"),
    "nothing": (replaced(None), "no list of numbers"),
    "nested": (replaced([[1.0] * 384]), "no list of numbers"),
    "no data": (status(200, {"embeddings": []}), "no list `data`"),
    "a list": (status(200, [1, 2]), "no list `data`"),
    "a well": (status(200, "[" * 100_000), "does not answer in JSON"),
    "a huge number": (replaced([10**400] + [1] * 383), "not finite|no list of numbers"),
    "a page": (status(200, "<html>Welcome</html>"), "does not answer in JSON; look at url"),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
async def test_a_wrong_answer_is_never_taken_for_vectors(
    server: EmbeddingServer, embedders: Embedders, name: str
) -> None:
    answer, words = WRONG_ANSWERS[name]
    server.script.append(answer)
    with pytest.raises(BackendUnavailable, match=words):
        await embedders().embed_passages(["one", "two"], deadline())
    assert len(server.asked) == 1


REFUSALS = {
    "key": (status(401, {"error": {"code": "invalid_api_key", "message": f"bad key {KEY}"}}), "api_key"),
    "path": (
        status(404, "<html><body>nginx</body></html>"),
        "look at url, which ends before /embeddings, and at model",
    ),
    "text": (status(400, {"error": {"message": f"too long: {SECRET_TEXT}", "type": "BadRequest"}}), r"\(BadRequest\)"),
    "TEI": (status(413, {"error": SECRET_TEXT, "error_type": "Validation"}), r"413 \(Validation\): .* batch_size"),
    "large": (status(422, SECRET_TEXT * 100_000), "answered 422: "),
    "well": (status(400, "[" * 100_000), "answered 400: "),
    "moved": (status(301, "", location="/elsewhere"), "give the final address as url"),
    "teapot": (status(418, [KEY]), "answered 418: look at url and model"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_says_what_to_do_and_repeats_neither_key_nor_text(
    server: EmbeddingServer, embedders: Embedders, name: str
) -> None:
    answer, words = REFUSALS[name]
    server.script.append(answer)
    with pytest.raises(BackendUnavailable, match=words) as raised:
        await embedders().embed_passages([SECRET_TEXT], deadline())
    assert len(server.asked) == 1
    assert len(str(raised.value)) < 200
    assert KEY not in str(raised.value)
    assert SECRET_TEXT not in str(raised.value)


async def test_a_check_names_both_dimensions(embedders: Embedders) -> None:
    with pytest.raises(Misconfigured, match="have 384 dimensions, the setting says 1024"):
        await embedders(dimension=1024).check(deadline())


async def test_a_check_tells_of_an_unknown_model(embedders: Embedders) -> None:
    with pytest.raises(Misconfigured, match=r"404 \(model_not_found\): .* model"):
        await embedders(model="nobody").check(deadline())
    (problem,) = (await embedders(model="nobody").examine(deadline())).problems
    assert problem.code == "EMBEDDER_REFUSES"
    assert "model_not_found" in problem.message


async def test_an_examination_asks_a_well_endpoint_once_a_minute(server: EmbeddingServer, embedders: Embedders) -> None:
    embedder = embedders()
    for _ in range(3):
        assert (await embedder.examine(deadline())).problems == ()
    assert len(server.asked) == 1


async def test_a_check_tells_of_a_server_that_is_not_there(embedders: Embedders) -> None:
    embedder = embedders(url="http://127.0.0.1:1/v1", retries=1)
    with pytest.raises(BackendUnavailable, match=r"cannot be reached .* look at url.* attempts: 2"):
        await embedder.check(deadline())


async def test_no_more_requests_run_at_once_than_allowed(server: EmbeddingServer, embedders: Embedders) -> None:
    server.seconds = 0.02
    embedder = embedders(concurrency=3, batch_size=1)
    await asyncio.gather(*(embedder.embed_passages(["a", "b", "c", "d", "e"], deadline()) for _ in range(4)))
    assert server.most_running == 3


async def test_a_short_call_does_not_wait_for_a_long_one(server: EmbeddingServer, embedders: Embedders) -> None:
    server.seconds = 0.02
    embedder = embedders(concurrency=2, batch_size=1)
    long = asyncio.create_task(embedder.embed_passages(["many"] * 40, deadline()))
    await server.until(lambda: len(server.asked) > 0)
    await embedder.embed_passages(["one"], deadline())
    await embedder.embed_queries(["who?"], deadline())
    assert not long.done()
    assert len(await long) == 40


async def test_more_than_may_wait_is_refused(server: EmbeddingServer, embedders: Embedders) -> None:
    embedder = embedders(max_waiting=3)
    server.script.append(hang)
    first = asyncio.create_task(embedder.embed_passages(["one", "two"], deadline()))
    await server.until(lambda: len(server.asked) > 0)
    with pytest.raises(BackendUnavailable, match="2 texts wait already"):
        await embedder.embed_passages(["three", "four"], deadline())
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert len(await embedder.embed_passages(["three", "four"], deadline())) == 2


async def test_a_cancelled_call_leaves_nothing_running(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.extend([hang] * 4)
    call = asyncio.create_task(embedders(batch_size=1).embed_passages(["a text"] * 9, deadline()))
    await server.until(lambda: len(server.asked) == 4)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert other_tasks() == set()
    await server.until(lambda: server.running == 0)


async def test_one_failed_batch_ends_the_others(server: EmbeddingServer, embedders: Embedders) -> None:
    server.script.extend([hang, status(401), hang, hang])
    with pytest.raises(BackendUnavailable, match="401"):
        await embedders(batch_size=1).embed_passages(["a text"] * 9, deadline())
    assert other_tasks() == set()
    assert len(server.asked) <= 4


async def test_a_closed_one_is_unavailable(embedders: Embedders) -> None:
    embedder = embedders()
    await embedder.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await embedder.embed_queries(["who?"], deadline())


async def test_the_dimension_can_be_asked_for(server: EmbeddingServer) -> None:
    assert await measure_dimension(EndpointOptions(server.url, MODEL, dimension=1), deadline()) == 384


async def test_certificates_that_cannot_be_read_are_named(tmp_path: Any) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(BadConfig, match=f"ca_file: .*{name}"):
            EndpointEmbedder.open(EndpointOptions("https://127.0.0.1:1/v1", MODEL, 3, ca_file=tmp_path / name))
