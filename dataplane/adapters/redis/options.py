"""How to reach Redis, and how the cache in it behaves."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memplane.options import check_ranges
from memplane.settings import Secret

NO_SECRET = Secret("")
"""The password of who has none."""

_RANGES = {"database": (0, 1_000_000), "connect_timeout_s": (0.01, 600), "connections": (1, 10_000)}
_CACHE_RANGES = {"timeout_s": (0.001, 60), "max_value_bytes": (1, 512 * 1024 * 1024)}


class RedisMode(StrEnum):
    """What stands behind the addresses."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class RedisTls:
    """TLS to Redis.

    Attributes:
        ca_file: Certificates to trust; None: the system's authorities.
        cert_file: Our own certificate, for a server that asks.
        key_file: The key of that certificate.
        check_hostname: Whether the server's certificate must bear its name.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    check_hostname: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """How to reach Redis. Raises BadConfig, naming the field, for a figure that cannot be right.

    Attributes:
        mode: What stands behind the addresses.
        addresses: (host, port) of the server (the first counts), of the Sentinels, or of some nodes of the cluster.
        prefix: Begins every key, so that several MemPlanes may share a server; whoever may list keys sees it.
        username: Of the ACL user; empty: the default user.
        password: Of that user.
        database: Must be 0 in a cluster.
        tls: Encrypts the connections to servers and Sentinels alike; None: in clear.
        master_name: What the Sentinels call the master; matters under Sentinels alone.
        sentinel_username: The Sentinels' own access; matters under Sentinels alone.
        sentinel_password: Of that user.
        connect_timeout_s: For one connection.
        connections: Bounds the calls in flight; further ones wait for their deadline.
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

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisCacheOptions:
    """How the cache behaves. Raises BadConfig, naming the field, for a figure that cannot be right.

    Attributes:
        timeout_s: The longest that a call may take: a cache that is slower is as good as none.
        max_value_bytes: Larger values are not kept.
        count_accesses: Whether access counts of all data planes gather in Redis and reach the record store every 5 s.
        hot_memories: Whether rows that searches fetch come from Redis, too; for a record store that has no time left.
    """

    timeout_s: float = 0.25
    max_value_bytes: int = 1024 * 1024
    count_accesses: bool = True
    hot_memories: bool = False

    def __post_init__(self) -> None:
        check_ranges(self, _CACHE_RANGES)
