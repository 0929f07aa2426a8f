"""How to reach Elasticsearch, and what the index in it is made of."""

import re
from dataclasses import dataclass
from pathlib import Path

from memplane.options import check_ranges
from memplane.settings import BadConfig, Secret

NO_SECRET = Secret("")
"""The password or key of who has none."""
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HOST = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[^\s:/@?#]+):\d{1,5}(/[^\s?#]*)?")
_RANGES = {
    "shards": (1, 1024),
    "replicas": (0, 100),
    "bulk_bytes": (64 * 1024, 100 * 1024 * 1024),
    "bulk_documents": (1, 100_000),
    "open_timeout_s": (0.01, 600),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchOptions:
    """How to reach Elasticsearch and how the index is cut and filled. Raises BadConfig, naming the field.

    Give `api_key`, or `username` and `password`, or neither.

    Attributes:
        hosts: URLs with their port; a node that cannot be reached is passed over for the next.
        api_key: Encoded, as Elasticsearch gives it.
        username: Of a user, in place of the key.
        password: Of that user.
        ca_file: Certificates to trust; None: the system's authorities.
        verify_certificates: False takes any certificate and is for tests.
        prefix: Begins the names of index and template, so that several MemPlanes may share a cluster.
        shards: Shards of an index that is made anew.
        replicas: Copies of each shard of an index that is made anew; 0 for a single node.
        bulk_bytes: A bulk request ends there, or at `bulk_documents`, whichever comes first.
        bulk_documents: Most documents in a bulk request.
        open_timeout_s: Bounds the look at the server at start.
    """

    hosts: tuple[str, ...] = ("http://127.0.0.1:9200",)
    api_key: Secret = NO_SECRET
    username: str = ""
    password: Secret = NO_SECRET
    ca_file: Path | None = None
    verify_certificates: bool = True
    prefix: str = "memplane"
    shards: int = 1
    replicas: int = 1
    bulk_bytes: int = 5 * 1024 * 1024
    bulk_documents: int = 500
    open_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if not self.hosts:
            raise BadConfig("hosts: at least one is needed, such as https://search.example:9200")
        for host in self.hosts:
            if "@" in host:
                raise BadConfig("hosts: a URL holds no user and password; give username and password")
            if _HOST.fullmatch(host) is None:
                raise BadConfig(f"hosts: {host!r} is not a URL with its port, such as https://search.example:9200")
        if _PREFIX.fullmatch(self.prefix) is None:
            raise BadConfig(f"prefix: {self.prefix!r} is not 1 to 64 of a-z, 0-9, _ and -, the first no sign")
        if self.api_key and self.username:
            raise BadConfig("api_key: give it or username and password, not both")
        if bool(self.username) != bool(self.password):
            raise BadConfig("password: username and password go together")
        check_ranges(self, _RANGES)
