"""The Redis of the tests is a real one, alone, as a cluster and under Sentinels."""

import pytest
import redis

from tests.servers.redis import RedisCluster, RedisSentinel, RedisServer


def test_it_has_streams_with_claims(redis_server: RedisServer, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        client.xgroup_create("queue", "workers", mkstream=True)
        client.xadd("queue", {"a": "1"})
        client.xreadgroup("workers", "gone", {"queue": ">"})
        assert client.xautoclaim("queue", "workers", "heir", min_idle_time=0)[1][0][1] == {"a": "1"}
    assert redis_server.call("EXISTS", "queue") == 1


def test_what_was_written_outlives_kill_9() -> None:
    server = RedisServer.create(password="secret")
    try:
        server.call("SET", "kept", "7")
        server.kill()
        server.start()
        assert server.call("GET", "kept") == "7"
        with pytest.raises(redis.AuthenticationError):
            RedisServer(server.process, server.port, password="").call("PING")
    finally:
        server.close()
    assert not server.process.folder.exists()


def test_settings_can_be_those_of_a_careless_owner() -> None:
    server = RedisServer.create({"maxmemory": "10mb", "maxmemory-policy": "allkeys-lru", "appendonly": "no"})
    try:
        assert server.call("CONFIG", "GET", "maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
    finally:
        server.close()


def test_a_cluster_spreads_keys_over_its_nodes(redis_cluster: RedisCluster, redis_cluster_url: str) -> None:
    with redis.RedisCluster.from_url(redis_cluster_url) as client:
        for number in range(50):
            client.set(f"key-{number}", number)
    sizes = [node.call("DBSIZE") for node in redis_cluster.nodes]
    assert sum(sizes) == 50
    assert all(sizes)


def test_sentinels_promote_the_replica_of_a_dead_master(redis_sentinel: RedisSentinel) -> None:
    first = redis_sentinel.master()
    first.call("SET", "kept", "7")
    first.call("WAIT", 1, 1000)
    promoted = redis_sentinel.fail_over()
    assert promoted is not first
    assert promoted.call("GET", "kept") == "7"
    redis_sentinel.restore(first)
