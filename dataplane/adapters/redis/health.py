"""What is wrong with a Redis that answers, for those who keep tombstones and a queue in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redis.asyncio import RedisCluster
from redis.exceptions import ResponseError

from dataplane.adapters.redis.connection import RedisConnection, is_forbidden
from dataplane.adapters.redis.diagnosis import OLDEST_VERSION, version_of
from dataplane.ports import Examination, Problem

NEARLY_FULL = 0.9
"""Share of `maxmemory` in use from which on it is told. Unmeasured."""

Facts = Mapping[str, Any]


async def examine(connection: RedisConnection) -> Examination:
    """Asks every master. Raises as the driver does; what the user may not ask is left unchecked."""
    nodes = await _facts(connection)
    if not nodes:
        return Examination("Redis (version and settings cannot be checked: INFO is forbidden)")
    problems = [problem for facts in nodes for problem in _problems(facts)]
    problems += await _cluster_problems(connection)
    return Examination(_name(nodes[0]), tuple(dict.fromkeys(problems)))


async def _facts(connection: RedisConnection) -> Sequence[Facts]:
    """INFO of each master, with its save points under `save`, as far as they may be asked."""
    info = await _ask(connection, "info")
    configs = await _ask(connection, "config_get", "save")
    return [{**facts, **configs.get(node, {})} for node, facts in info.items()]


async def _ask(connection: RedisConnection, command: str, *arguments: str) -> dict[str, Facts]:
    """The answer of each master; none when it is forbidden."""
    client = connection.client
    try:
        if isinstance(client, RedisCluster):
            told = await getattr(client, command)(*arguments, target_nodes=RedisCluster.PRIMARIES)
            return dict(told)
        return {"": dict(await getattr(client, command)(*arguments))}
    except ResponseError as error:
        if is_forbidden(error):
            return {}
        raise


def _name(facts: Facts) -> str:
    if "valkey_version" in facts:
        return f"Valkey {facts['valkey_version']}"
    return f"Redis {facts.get('redis_version', '(unknown version)')}"


def _problems(facts: Facts) -> Iterator[Problem]:
    yield from _version_problems(facts)
    yield from _memory_problems(facts)
    yield from _durability_problems(facts)
    if facts.get("role") == "slave":
        yield Problem(
            "READ_ONLY", "this Redis is a replica and takes no writes; give the master's address or Sentinels"
        )


def _version_problems(facts: Facts) -> Iterator[Problem]:
    version = str(facts.get("redis_version", ""))
    if version and "valkey_version" not in facts and version_of(version) < OLDEST_VERSION:
        yield Problem("SERVER_TOO_OLD", f"Redis {version} is too old; take 6.2 or newer")


def _memory_problems(facts: Facts) -> Iterator[Problem]:
    policy = str(facts.get("maxmemory_policy", ""))
    if policy.startswith("allkeys"):
        yield Problem(
            "EVICTION_ON",
            f"maxmemory-policy is {policy}: tombstones and queued writes may be evicted, and forgotten or accepted "
            "memories with them; set noeviction, or volatile-lru, which takes cached values alone",
        )
    limit, used = int(facts.get("maxmemory", 0)), int(facts.get("used_memory", 0))
    if limit > 0 and used > NEARLY_FULL * limit and not policy.startswith(("allkeys", "volatile")):
        yield Problem(
            "MEMORY_NEARLY_FULL",
            f"{used * 100 // limit} % of maxmemory are in use, and {policy or 'the policy'} refuses writes when it is "
            "full; raise maxmemory, or set volatile-lru, so that cached values make room",
        )


def _durability_problems(facts: Facts) -> Iterator[Problem]:
    is_known = "aof_enabled" in facts and "save" in facts
    if is_known and not int(facts["aof_enabled"]) and not facts["save"]:
        yield Problem(
            "NO_PERSISTENCE",
            "neither appendonly nor save points are on: queued writes and tombstones are lost when it restarts; set "
            "appendonly yes",
        )


async def _cluster_problems(connection: RedisConnection) -> list[Problem]:
    if not isinstance(connection.client, RedisCluster):
        return []
    node = connection.client.get_default_node()
    state = dict(await connection.client.cluster_info(target_nodes=node)).get("cluster_state", "ok")
    if state == "ok":
        return []
    return [Problem("CLUSTER_NOT_OK", f"the cluster's state is {state}: some slots are not served; see CLUSTER INFO")]
