"""The Elasticsearch of the tests is a real one, as bare as one can be."""

import pytest
from elasticsearch import AsyncElasticsearch, BadRequestError

from tests.servers.elasticsearch import ElasticsearchServer

pytestmark = pytest.mark.slow

MAPPINGS = {"properties": {"tokens": {"type": "text", "analyzer": "whitespace"}}}


async def test_it_answers_the_official_client(elasticsearch_url: str) -> None:
    async with AsyncElasticsearch(elasticsearch_url) as client:
        await client.indices.create(index="words", mappings=MAPPINGS)
        await client.index(index="words", id="1", document={"tokens": "INV-2024/0031 paid"}, refresh=True)
        answer = await client.search(index="words", query={"match": {"tokens": "INV-2024/0031"}})
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["1"]


async def test_it_has_nothing_but_the_core(elasticsearch_url: str) -> None:
    async with AsyncElasticsearch(elasticsearch_url) as client:
        await client.indices.create(index="words", mappings=MAPPINGS)
        with pytest.raises(BadRequestError, match="no handler found"):
            await client.delete_by_query(index="words", query={"match_all": {}})


async def test_each_test_finds_it_empty(elasticsearch_url: str) -> None:
    async with AsyncElasticsearch(elasticsearch_url) as client:
        assert not await client.indices.exists(index="words")


async def test_what_was_indexed_outlives_kill_9(
    elasticsearch_server: ElasticsearchServer, elasticsearch_url: str
) -> None:
    async with AsyncElasticsearch(elasticsearch_url) as client:
        await client.index(index="words", id="1", document={"tokens": "kept"})
        elasticsearch_server.kill()
        elasticsearch_server.start()
        assert (await client.get(index="words", id="1"))["_source"] == {"tokens": "kept"}
