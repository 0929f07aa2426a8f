"""What a wrong configuration of Redis is told."""

import asyncio
from collections.abc import Iterator

import pytest

from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.options import RedisMode, RedisOptions, RedisTls
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.settings import Secret
from tests.servers.redis import RedisCluster, RedisSentinel, RedisServer

NOBODY = ("127.0.0.1", 1)


@pytest.fixture(scope="module")
def guarded() -> Iterator[RedisServer]:
    server = RedisServer.create(password="right")
    yield server
    server.close()


async def _error(options: RedisOptions, within_s: float = 5.0) -> str:
    deadline_s = asyncio.get_running_loop().time() + within_s
    with pytest.raises(Misconfigured) as refused:
        await RedisConnection.open(options, "cache", deadline_s)
    assert refused.value.backend == "cache"
    return refused.value.problem


@pytest.mark.parametrize("password", ["", "wrong"])
async def test_a_wrong_or_missing_password(guarded: RedisServer, password: str) -> None:
    problem = await _error(RedisOptions(addresses=(guarded.address,), password=Secret(password)))
    assert "password" in problem
    assert "wrong" not in problem


async def test_a_password_that_nobody_asked_for(redis_server: RedisServer) -> None:
    assert "password" in await _error(RedisOptions(addresses=(redis_server.address,), password=Secret("right")))


async def test_the_right_password_opens(guarded: RedisServer) -> None:
    options = RedisOptions(addresses=(guarded.address,), password=Secret("right"))
    connection = await RedisConnection.open(options, "cache", asyncio.get_running_loop().time() + 5)
    await connection.close()
    assert "right" not in repr(options)


async def test_a_form_that_the_server_does_not_have(
    redis_server: RedisServer, redis_cluster: RedisCluster, redis_sentinel: RedisSentinel
) -> None:
    one, sentinels = (redis_server.address,), tuple(redis_sentinel.addresses)
    assert "standalone" in await _error(RedisOptions(mode=RedisMode.CLUSTER, addresses=one))
    assert "not a Sentinel" in await _error(RedisOptions(mode=RedisMode.SENTINEL, addresses=one))
    assert "mode to cluster" in await _error(RedisOptions(addresses=(redis_cluster.nodes[0].address,)))
    assert "mode to sentinel" in await _error(RedisOptions(addresses=sentinels))
    unknown = RedisOptions(mode=RedisMode.SENTINEL, addresses=sentinels, master_name="other")
    assert "'other'" in await _error(unknown)


async def test_a_database_other_than_0_in_a_cluster(redis_cluster: RedisCluster) -> None:
    options = RedisOptions(mode=RedisMode.CLUSTER, addresses=(redis_cluster.nodes[0].address,), database=3)
    assert "database" in await _error(options)


async def test_a_database_that_is_not_there(redis_server: RedisServer) -> None:
    assert "database" in await _error(RedisOptions(addresses=(redis_server.address,), database=9_999))


@pytest.mark.parametrize("mode", list(RedisMode))
async def test_nobody_at_the_address_is_an_outage(mode: RedisMode) -> None:
    with pytest.raises(BackendUnavailable):
        await RedisConnection.open(
            RedisOptions(mode=mode, addresses=(NOBODY,)), "cache", asyncio.get_running_loop().time() + 5
        )


async def test_tls_to_a_port_without_it_gets_a_hint(redis_server: RedisServer) -> None:
    options = RedisOptions(addresses=(redis_server.address,), tls=RedisTls(), connect_timeout_s=0.2)
    with pytest.raises(BackendUnavailable, match="TLS"):
        await RedisConnection.open(options, "cache", asyncio.get_running_loop().time() + 1)
