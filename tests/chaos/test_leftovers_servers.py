"""What is left of erased memories on servers is found in each of them, plain or packed."""

import base64

import httpx
import psycopg
import pytest
import redis
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from dataplane.adapters.postgres.options import PostgresOptions
from tests.chaos import leftovers
from tests.chaos.history import marker
from tests.chaos.intents import sentence
from tests.chaos.stack import Places

ERASED = marker(0, 1, 2)
PACKED = base64.b64encode(b"\0\1" + sentence(ERASED).encode()).decode()
COLLECTION = "planted"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "PURGED_WITHIN_S", 0.0)


async def places_of(places: Places) -> set[str]:
    """Where it is found, without the name of the index, table or key."""
    found = await leftovers.leftovers(places, [ERASED])
    return {text.split()[0] for text in found}


async def test_a_text_in_a_table_is_found(migrated_postgres: PostgresOptions) -> None:
    assert migrated_postgres.migrate_dsn
    places = Places((), postgres_dsn=migrated_postgres.migrate_dsn)
    with psycopg.connect(migrated_postgres.migrate_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE memplane.planted (body bytea)")
        try:
            assert await places_of(places) == set()
            connection.execute("INSERT INTO memplane.planted VALUES (%s)", [sentence(ERASED).encode()])
            assert await places_of(places) == {"postgresql"}
        finally:
            connection.execute("DROP TABLE memplane.planted")


@pytest.mark.parametrize("command", ["set", "hset", "xadd", "rpush", "sadd", "zadd"])
async def test_a_text_under_a_key_is_found(redis_url: str, command: str) -> None:
    text = sentence(ERASED)
    with redis.Redis.from_url(redis_url) as client:
        plant = {
            "set": lambda: client.set("k", text),
            "hset": lambda: client.hset("k", "field", text),
            "xadd": lambda: client.xadd("k", {"entry": text}),
            "rpush": lambda: client.rpush("k", text),
            "sadd": lambda: client.sadd("k", text),
            "zadd": lambda: client.zadd("k", {text: 1}),
        }
        plant[command]()
        assert await places_of(Places((), redis_url=redis_url)) == {"redis"}
        client.delete("k")
    assert await places_of(Places((), redis_url=redis_url)) == set()


@pytest.mark.parametrize("text", [sentence(ERASED), PACKED])
async def test_a_text_in_a_document_is_found(elasticsearch_url: str, text: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        planted = await client.post(f"{elasticsearch_url}/planted/_doc?refresh=true", json={"row": text})
    planted.raise_for_status()
    assert await places_of(Places((), elasticsearch_url=elasticsearch_url)) == {"elasticsearch"}


@pytest.mark.parametrize("text", [sentence(ERASED), PACKED])
async def test_a_text_in_a_payload_is_found(qdrant_peer_url: str, text: str) -> None:
    address = qdrant_peer_url.removeprefix("http://")
    host, _, port = address.partition(":")
    client = QdrantClient(host=host, grpc_port=int(port), prefer_grpc=True, check_compatibility=False)
    client.create_collection(COLLECTION, VectorParams(size=2, distance=Distance.DOT))
    try:
        client.upsert(COLLECTION, [PointStruct(id=1, vector=[1.0, 0.0], payload={"row": text})], wait=True)
        assert await places_of(Places((), qdrant_url=qdrant_peer_url)) == {"qdrant"}
    finally:
        client.delete_collection(COLLECTION)
        client.close()
