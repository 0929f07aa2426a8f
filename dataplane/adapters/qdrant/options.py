"""Where a Qdrant server is, and how its collections are made."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from memplane.options import check_ranges
from memplane.settings import BadConfig, Secret

GRPC_PORT = 6334

_PREFIX = re.compile(r"[A-Za-z0-9_]{1,40}")
_RANGES = {
    "shards": (1, 1000),
    "replicas": (1, 100),
    "write_consistency_factor": (1, 100),
    "hnsw_m": (4, 128),
    "hnsw_ef_construct": (4, 4096),
    "timeout_s": (0.01, 600),
    "batch_size": (1, 10_000),
    "partition_refresh_s": (0.01, 60),
}


@dataclass(frozen=True, slots=True)
class QdrantOptions:
    """A Qdrant server or cluster. Raises BadConfig, naming the field, for what cannot be right.

    What is said of collections holds for those made from now on; Qdrant keeps existing ones as they are.

    Attributes:
        url: Its gRPC address such as `http://host:6334`; `https` for TLS. Without a port it is 6334.
        api_key: Sent with each call.
        ca_file: PEM certificates to trust instead of the usual authorities.
        prefix: Name of the alias, and how the names of our collections begin.
        shards: Shards of a collection.
        replicas: Copies of each shard.
        write_consistency_factor: Copies that must have taken a write before it counts.
        hnsw_m: Links of a point in the HNSW graph.
        hnsw_ef_construct: Neighbours looked at when a point is linked.
        quantisation: `scalar` (int8, a quarter of the memory) or `binary` (a 32nd; for 1024 dimensions and more). The
            best of a search are scored again with the full vectors.
        on_disk: Vectors and graph are read from disk as needed instead of held in memory.
        rows: Each point keeps its memory, packed, from which searches are answered while the record store is down. What
            is forgotten stays on Qdrant's disk until its optimiser runs; without rows no text lies there, and those of
            the text index answer alone. Points written before keep theirs until they are written again.
        timeout_s: One call may take as long, and never beyond the caller's deadline.
        batch_size: Points sent in one call, at most.
        partition_refresh_s: How long a list of the dedicated collections is used. A new one takes its first write so
            much later, so that by then every data plane searches it: give all data planes the same value.
    """

    url: str = "http://127.0.0.1:6334"
    api_key: Secret | None = None
    ca_file: Path | None = None
    prefix: str = "memplane"
    shards: int = 1
    replicas: int = 1
    write_consistency_factor: int = 1
    hnsw_m: int = 16
    hnsw_ef_construct: int = 200
    quantisation: Literal["none", "scalar", "binary"] = "none"
    on_disk: bool = False
    rows: bool = True
    timeout_s: float = 5.0
    batch_size: int = 128
    partition_refresh_s: float = 2.0

    def __post_init__(self) -> None:
        self._check_url()
        if _PREFIX.fullmatch(self.prefix) is None:
            raise BadConfig(f"prefix: {self.prefix!r} is not 1 to 40 characters of [A-Za-z0-9_]")
        if self.ca_file is not None and not self.ca_file.is_file():
            raise BadConfig(f"ca_file: there is no file {self.ca_file}")
        if self.quantisation not in {"none", "scalar", "binary"}:
            raise BadConfig(f"quantisation: {self.quantisation!r} is not none, scalar or binary")
        check_ranges(self, _RANGES)
        if self.write_consistency_factor > self.replicas:
            raise BadConfig(
                f"write_consistency_factor: {self.write_consistency_factor} is above replicas ({self.replicas}); "
                "no write could ever succeed"
            )

    @property
    def host(self) -> str:
        """The host of `url`."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The gRPC port of `url`."""
        return urlsplit(self.url).port or GRPC_PORT

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return urlsplit(self.url).scheme == "https"

    def _check_url(self) -> None:
        if "@" in self.url:  # first of all, for other messages show the URL
            raise BadConfig("url: give it without user and password; the key has a setting of its own")
        try:
            parts, _port = urlsplit(self.url), urlsplit(self.url).port
        except ValueError as error:
            raise BadConfig(f"url: {self.url!r} is not an address: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadConfig(f"url: {self.url!r} is not an address such as http://host:{GRPC_PORT}")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise BadConfig("url: give it without path, query and fragment; the key has a setting of its own")
