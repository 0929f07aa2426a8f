import pytest

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from memplane.settings import BadConfig, Secret


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"hosts": ()}, "hosts: at least one is needed"),
        ({"hosts": ("search.example",)}, "hosts: 'search.example' is not a URL with its port"),
        ({"hosts": ("http://user:word@search.example:9200",)}, "hosts: a URL holds no user"),
        ({"prefix": "_x"}, "prefix: '_x'"),
        ({"prefix": "A"}, "prefix: 'A'"),
        ({"username": "u"}, "password: username and password go together"),
        ({"username": "u", "password": Secret("p"), "api_key": Secret("k")}, "api_key: give it or"),
        ({"shards": 0}, "shards: 0 is not from 1"),
        ({"replicas": -1}, "replicas: -1 is not from 0"),
        ({"bulk_bytes": 1}, "bulk_bytes: 1 is not from 65536"),
        ({"open_timeout_s": float("nan")}, "open_timeout_s: nan is not from 0.01"),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(BadConfig, match=problem):
        ElasticsearchOptions(**changes)  # type: ignore[arg-type]  # wrong on purpose


def test_secrets_do_not_print() -> None:
    options = ElasticsearchOptions(username="u", password=Secret("hush"))
    assert "hush" not in repr(options)
    assert ElasticsearchOptions(hosts=("https://[::1]:9200/search", "http://es-1.internal:9200")).shards == 1
