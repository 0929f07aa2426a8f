from pathlib import Path
from typing import Any

import pytest

from dataplane.adapters.qdrant.options import QdrantOptions
from memplane.settings import BadConfig, Secret


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"url": "qdrant:6334"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://host:port"}, "url"),
        ({"url": "http://user@host"}, "url"),
        ({"url": "http://user:secret@host:99999"}, "url"),
        ({"url": "http://host/path"}, "url"),
        ({"prefix": "mem-plane"}, "prefix"),
        ({"prefix": ""}, "prefix"),
        ({"shards": 0}, "shards"),
        ({"ca_file": Path("/nowhere/ca.pem")}, "ca_file"),
        ({"hnsw_m": 1}, "hnsw_m"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"quantisation": "product"}, "quantisation"),
        ({"replicas": 2, "write_consistency_factor": 3}, "write_consistency_factor"),
    ],
)
def test_what_cannot_be_right_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(BadConfig, match=f"^{named}: ") as raised:
        QdrantOptions(**given)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "host", "port", "tls"),
    [
        ("http://127.0.0.1:7000", "127.0.0.1", 7000, False),
        ("https://qdrant.example", "qdrant.example", 6334, True),
        ("http://[::1]:6334/", "::1", 6334, False),
    ],
)
def test_the_url_says_where_and_how(url: str, host: str, port: int, tls: bool) -> None:
    options = QdrantOptions(url=url)
    assert (options.host, options.port, options.tls) == (host, port, tls)


def test_the_key_prints_as_stars() -> None:
    assert "hidden" not in repr(QdrantOptions(api_key=Secret("hidden")))
