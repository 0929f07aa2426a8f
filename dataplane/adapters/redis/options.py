"""How to reach Redis, and how the cache in it behaves."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memplane.settings import Secret

NO_SECRET = Secret("")
"""The password of who has none."""


class RedisMode(StrEnum):
    """What stands behind the addresses."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class RedisTls:
    """TLS to Redis. `ca_file` None: the system's authorities. `cert_file` and `key_file` for a server that asks."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    check_hostname: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """How to reach Redis.

    `addresses` are (host, port): of the server (the first counts), of the Sentinels, or of some nodes of the cluster.
    `prefix` begins every key, so that several MemPlanes may share a server; it is shown to whoever may list keys.
    `database` must be 0 in a cluster. `master_name` and the Sentinels' own access matter under Sentinels alone; TLS
    covers both. `connections` bounds the calls in flight; further ones wait for their deadline.
    """

    mode: RedisMode = RedisMode.STANDALONE
    addresses: tuple[tuple[str, int], ...] = (("127.0.0.1", 6379),)
    prefix: str = "memplane"
    username: str = ""
    password: Secret = NO_SECRET
    database: int = 0
    tls: RedisTls | None = None
    master_name: str = "memplane"
    sentinel_username: str = ""
    sentinel_password: Secret = NO_SECRET
    connect_timeout_s: float = 2.0
    connections: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisCacheOptions:
    """How the cache behaves.

    `timeout_s` is the longest that a call may take: a cache that is slower is as good as none. Values above
    `max_value_bytes` are not kept.
    """

    timeout_s: float = 0.25
    max_value_bytes: int = 1024 * 1024
