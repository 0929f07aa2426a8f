"""The stores a company runs, as real processes, and a configuration file that names them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from dataplane.adapters.postgres.migrate import migrate
from tests.peers.qdrant.process import QdrantPeer
from tests.postgres import options_for
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer


@dataclass(frozen=True)
class CompanyStores:
    """Servers that tests share; each configuration has a database and prefixes of its own."""

    postgres: PostgresServer
    redis: RedisServer
    elasticsearch: ElasticsearchServer
    qdrant: QdrantPeer

    async def configure(self, folder: Path, name: str, more: str = "") -> Path:
        """A configuration file for a MemPlane called `name`; its schema is there. `more` is added to the file."""
        owner = self.postgres.database(name)
        options = options_for(owner)
        await asyncio.to_thread(migrate, options)
        redis = urlsplit(self.redis.url)
        path = folder / f"{name}.toml"
        path.write_text(
            f"""
[record_store]
adapter = "postgres"
dsn = "{options.dsn}"

[vector_index]
adapter = "qdrant"
url = "{self.qdrant.url}"
prefix = "{name}"

[text_index]
adapter = "elasticsearch"
hosts = ["{self.elasticsearch.url}"]
prefix = "{name}"
replicas = 0

[redis]
addresses = ["{redis.hostname}:{redis.port}"]
prefix = "{name}"

[cache]
adapter = "redis"

[queue]
adapter = "redis"
{more}
"""
        )
        return path


async def configure_postgres_only(postgres: PostgresServer, folder: Path, name: str) -> Path:
    """A configuration file for a MemPlane that has PostgreSQL alone."""
    owner = postgres.database(name)
    options = options_for(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    await asyncio.to_thread(migrate, options)
    path = folder / f"{name}.toml"
    path.write_text(
        f"""
[record_store]
adapter = "postgres"
dsn = "{options.dsn}"

[vector_index]
adapter = "pgvector"

[text_index]
adapter = "tsvector"

[queue]
adapter = "postgres"
"""
    )
    return path
