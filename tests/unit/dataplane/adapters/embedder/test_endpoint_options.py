from typing import Any

import pytest

from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from memplane.settings import BadConfig, Secret


def options(**changes: Any) -> EndpointOptions:
    return EndpointOptions(**{"url": "http://host:8080/v1", "model": "bge-m3", "dimension": 1024, **changes})


@pytest.mark.parametrize(
    "change",
    [
        {"url": "host:8080/v1"},
        {"url": "ftp://host/v1"},
        {"url": "http://"},
        {"url": "http://host:99999/v1"},
        {"url": "http://[::1/v1"},
        {"url": "http://me:secret@host/v1"},
        {"url": "http://me:secret@host:99999/v1"},
        {"url": "http://me:secret/@host/v1"},
        {"url": "http://host/v1?key=secret"},
        {"model": ""},
        {"dimension": 0},
        {"api_key": Secret("two words")},
        {"api_key": Secret("schlüssel")},
        {"timeout_s": float("nan")},
        {"batch_size": 0},
        {"max_waiting": 0},
        {"retries": -1},
        {"concurrency": 0},
        {"max_tokens": 0},
    ],
)
def test_what_cannot_be_right_is_refused_by_name(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(BadConfig, match=f"^{name}: ") as raised:
        options(**change)
    if name in {"url", "api_key"}:
        assert "secret" not in str(raised.value)


def test_the_key_prints_as_stars() -> None:
    assert "sk-123" not in repr(options(api_key=Secret("sk-123")))


def test_the_name_stands_for_everything_that_makes_other_embeddings() -> None:
    names = [
        options(**change).name
        for change in (
            {},
            {"model": "bge-large"},
            {"dimension": 512},
            {"query_prefix": "query: "},
            {"passage_prefix": "query: "},
            {"query_prefix": "query: p", "passage_prefix": "assage: "},
            {"query_prefix": "query: ", "passage_prefix": "passage: "},
        )
    ]
    assert names[0] == "endpoint:bge-m3@1024"
    assert len(set(names)) == len(names)


def test_the_name_is_the_same_wherever_the_endpoint_runs() -> None:
    assert options(url="https://elsewhere/v1", batch_size=7, timeout_s=3).name == options().name
