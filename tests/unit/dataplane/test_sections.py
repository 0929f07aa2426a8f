"""What sections of the configuration file refuse."""

from typing import Any

import pytest

from dataplane.adapters.postgres.queue import PostgresQueueOptions
from dataplane.adapters.redis.options import RedisCacheOptions, RedisMode
from dataplane.adapters.redis.queue import RedisQueueOptions
from dataplane.adapters.sqlite.queue import SqliteQueueOptions
from dataplane.sections import RedisSection
from memplane.options import options_from
from memplane.settings import BadConfig


@pytest.mark.parametrize(
    ("kind", "table", "problem"),
    [
        (RedisSection, {"connections": 0}, r"x\.connections: 0 is not from 1 to 10000"),
        (RedisSection, {"addresses": ["redis"]}, r"x\.addresses: 'redis' is not HOST:PORT"),
        (RedisSection, {"connect_timeout_s": 0}, r"x\.connect_timeout_s: 0\.0 is not from 0\.01"),
        (RedisCacheOptions, {"timeout_s": 0}, r"x\.timeout_s: 0\.0 is not from"),
        (SqliteQueueOptions, {"max_entries": 0}, r"x\.max_entries: 0 is not from 1 to 100000000"),
        (PostgresQueueOptions, {"claim_after_s": 0}, r"x\.claim_after_s: 0\.0 is not from 0\.01"),
        (RedisQueueOptions, {"retry_after_s": -1}, r"x\.retry_after_s: -1\.0 is not from 0\.01"),
    ],
)
def test_what_cannot_be_right_is_named_with_its_section(kind: type, table: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadConfig, match=problem):
        options_from(kind, "x", table)


def test_a_redis_section_becomes_the_options_of_its_adapters() -> None:
    made = options_from(RedisSection, "redis", {"mode": "sentinel", "addresses": ["[::1]:26379"], "tls": True})
    assert made.options().mode is RedisMode.SENTINEL
    assert made.options().addresses == (("::1", 26379),)
    assert made.options().tls is not None
