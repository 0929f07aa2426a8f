"""Fixtures of the real servers: each starts with the first test that asks for it, once in a test process.

A server is shared by the tests of its process, so a test takes what is its own: `postgres_database`,
`postgres_database_factory`, or a server that was emptied for it (`redis_url`, `redis_cluster_url`,
`elasticsearch_url`).
"""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisCluster, RedisSentinel, RedisServer
from tools.fetch_elasticsearch import Unavailable


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """PostgreSQL 18 with pgvector; never stopped or killed by a test, which starts its own with `create`."""
    server = PostgresServer.create()
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres_replica(postgres_server: PostgresServer) -> PostgresServer:
    """A read-only copy that streams from `postgres_server` and ends with it."""
    return postgres_server.replica()


@pytest.fixture(scope="session")
def postgres_database_names() -> Iterator[str]:
    """Names that no other test has."""
    return (f"test_{number}" for number in itertools.count())


@pytest.fixture
def postgres_database_factory(
    postgres_server: PostgresServer, postgres_database_names: Iterator[str]
) -> Iterator[Callable[[], str]]:
    """Each call returns the superuser's DSN to a new, empty database; all are dropped after the test."""
    made: list[str] = []

    def create() -> str:
        made.append(next(postgres_database_names))
        return postgres_server.database(made[-1])

    yield create
    for name in made:
        postgres_server.drop(name)


@pytest.fixture
def postgres_database(postgres_database_factory: Callable[[], str]) -> str:
    """The superuser's DSN to a new, empty database, dropped after the test."""
    return postgres_database_factory()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Redis 8.2, append-only, without a password; never stopped or killed by a test, which starts its own."""
    server = RedisServer.create()
    yield server
    server.close()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """URL of `redis_server`, emptied."""
    redis_server.call("FLUSHALL")
    return redis_server.url


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisCluster]:
    """Three masters that share the slots."""
    cluster = RedisCluster.create()
    yield cluster
    cluster.close()


@pytest.fixture
def redis_cluster_url(redis_cluster: RedisCluster) -> str:
    """URL of the first node of `redis_cluster`, emptied."""
    redis_cluster.flush()
    return redis_cluster.url


@pytest.fixture(scope="session")
def redis_sentinel() -> Iterator[RedisSentinel]:
    """A master and a replica under three Sentinels; a test that fails it over restores it."""
    watched = RedisSentinel.create()
    yield watched
    watched.close()


@pytest.fixture(scope="session")
def elasticsearch_server() -> Iterator[ElasticsearchServer]:
    """Elasticsearch 8.19, the core alone; skips where Java 17 or the distribution cannot be had.

    A test that kills it starts it again: one of its own would cost six seconds.
    """
    try:
        server = ElasticsearchServer.create()
    except Unavailable as reason:
        pytest.skip(str(reason))
    yield server
    server.close()


@pytest.fixture
def elasticsearch_url(elasticsearch_server: ElasticsearchServer) -> str:
    """URL of `elasticsearch_server`, emptied."""
    elasticsearch_server.delete_all()
    return elasticsearch_server.url
