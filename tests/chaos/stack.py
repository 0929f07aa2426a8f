"""What runs under chaos: both planes as processes, on embedded stores or on the servers of a company."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml
from psycopg import conninfo

from dataplane.adapters.postgres.migrate import migrate
from memplane.builtin import policies_folder
from memplane.policy.access import hash_api_key
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from tests.chaos.disk import SmallDisk
from tests.chaos.proxy import Proxy
from tests.chaos.units import PlaneUnit, Server, ServerUnit, Unit
from tests.e2e.control_process import ControlProcess
from tests.e2e.data_process import DataProcess
from tests.peers.qdrant.process import QdrantPeer
from tests.postgres import options_for
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port
from tests.servers.redis import RedisServer

TENANT_COUNT = 4
PREFIX = "chaos"
READY_WITHIN_S = 60.0
WRITE_WITHIN_S = 2.0
"""What a write waits for each store, and any call in the line, in the policies of a run."""


@dataclass(frozen=True)
class Options:
    """`stores` is `embedded` or `company`; `queue` is `sqlite` there and `redis` or `postgres` here.

    `config`: the configuration file of an embedded data plane.
    """

    stores: str
    folder: Path
    queue: str
    embedder: str = "hash"
    config: str = '[queue]\nadapter = "sqlite"\n'


@dataclass(frozen=True)
class Places:
    """Where raw bytes lie; what a stack has not is None."""

    data_dirs: Sequence[Path]
    postgres_dsn: str | None = None
    redis_url: str | None = None
    elasticsearch_url: str | None = None
    qdrant_url: str | None = None


@dataclass
class Stack:
    """The processes of one run, each with a proxy before it where it is called over a network."""

    options: Options
    control: ControlProcess
    planes: list[DataProcess] = field(default_factory=list)
    units: dict[str, Unit] = field(default_factory=dict)
    proxies: dict[str, Proxy] = field(default_factory=dict)
    places: Places = Places(())
    disk: SmallDisk | None = None
    policy_number: int = 0

    @property
    def addresses(self) -> list[str]:
        """Of each data plane, through its proxy."""
        return [self.proxies[name].address for name in self.plane_names]

    @property
    def plane_names(self) -> list[str]:
        """`data-1` and so on."""
        return [name for name in self.units if name.startswith("data-")]

    @property
    def store_names(self) -> list[str]:
        """Of the stores that are servers."""
        return [name for name in self.units if name != "control" and not name.startswith("data-")]

    @property
    def api_keys(self) -> dict[str, str]:
        """API key of each tenant."""
        return {f"tenant-{number}": f"mpk_key-of-tenant-{number}" for number in range(TENANT_COUNT)}

    def server(self, name: str) -> object:
        """The server of a store."""
        return cast(ServerUnit, self.units[name]).server

    def write_policies(self) -> None:
        """Puts the next policy set into the control plane's folder; it differs in what changes no answer."""
        self.policy_number += 1
        self.control.folder.mkdir(exist_ok=True)
        for document in policies_folder("default").glob("*.yaml"):
            shutil.copy(document, self.control.folder / document.name)
        (self.control.folder / "rbac.yaml").write_text(rbac_yaml(self.api_keys, self.policy_number))
        (self.control.folder / "degradation.yaml").write_text(degradation_yaml())
        (self.control.folder / "namespace.yaml").write_text(namespace_yaml(list(self.api_keys)[1::2]))

    async def reload(self) -> None:
        """A new policy set takes force, if the control plane can be reached."""
        self.write_policies()
        request = admin_pb2.ReloadPolicySetRequest()
        await self.control.call("ReloadPolicySet", request)


def rbac_yaml(api_keys: Mapping[str, str], number: int) -> str:
    """Each key may do everything with memories in its own tenant's namespace, and nothing elsewhere."""
    lines = [f"# Set number {number}.", "rbac:", "  principals:"]
    for tenant, key in api_keys.items():
        lines += [
            f"    {tenant}:",
            f"      api_key_sha256: ['{hash_api_key(key)}']",
            "      grants:",
            f"        - {{namespace: {tenant}, permissions: [memory.read, memory.write, memory.forget]}}",
        ]
    lines += [f"    spare-{number % 7}: {{api_key_sha256: ['{number:064x}']}}"]
    return "\n".join(lines) + "\n"


def namespace_yaml(as_it_is: Sequence[str]) -> str:
    """Namespaces that keep every statement as it is and cache no answer; in the others the default policies hold."""
    sections: dict[str, object] = {}
    for document in policies_folder("examples/evaluation").glob("*.yaml"):
        if not document.name.endswith(".test.yaml"):
            sections |= yaml.safe_load(document.read_text())
    return json.dumps({"namespace_policy": {"overrides": dict.fromkeys(as_it_is, sections)}})


def degradation_yaml() -> str:
    """The default limits, but for writes: clients that wait 5 s are to be answered before they give up."""
    limits = yaml.safe_load((policies_folder("default") / "degradation.yaml").read_text())["degradation_policy"]
    for backend in limits.values():
        if isinstance(backend, dict) and "write_timeout_s" in backend:
            backend["write_timeout_s"] = min(backend["write_timeout_s"], WRITE_WITHIN_S)
    limits["admission"]["max_wait_s"] = WRITE_WITHIN_S
    return json.dumps({"degradation_policy": limits})


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Stack]:
    """A stack that serves, its data planes ready for writes; gone with its servers' data afterwards."""
    options.folder.mkdir(parents=True, exist_ok=True)
    stack = Stack(options, ControlProcess(options.folder / "control", options.folder / "policies"))
    async with AsyncExitStack() as exits:
        stack.write_policies()
        config = await (_embedded(stack, exits) if options.stores == "embedded" else _company(stack, exits))
        await stack.control.start()
        exits.push_async_callback(_end, PlaneUnit("control", stack.control))
        stack.units["control"] = PlaneUnit("control", stack.control)
        for name in ["data-1"] if options.stores == "embedded" else ["data-1", "data-2"]:
            await _add_plane(stack, name, config, exits)
        yield stack


async def _add_plane(stack: Stack, name: str, config: Path, exits: AsyncExitStack) -> None:
    port, folder = free_port(), stack.options.folder
    flags = ("--listen", f"127.0.0.1:{port}", "--config", str(config), "--node-id", name)
    plane = DataProcess(
        folder / name, stack.control.address, stack.control.data_dir / "signing_key.pub", flags,
        embedder=stack.options.embedder,
    )  # fmt: skip
    unit = PlaneUnit(name, plane)
    await plane.start(READY_WITHIN_S)
    exits.push_async_callback(_end, unit)
    stack.planes.append(plane)
    stack.units[name] = unit
    await _add_proxy(stack, name, port, exits)
    await plane.wait_ready(READY_WITHIN_S)


async def _add_proxy(stack: Stack, name: str, port: int, exits: AsyncExitStack) -> Proxy:
    proxy = stack.proxies[name] = Proxy(port)
    await proxy.start()
    exits.push_async_callback(proxy.close)
    return proxy


async def _end(unit: PlaneUnit) -> None:
    if unit.pid is not None:
        await unit.kill()


async def _embedded(stack: Stack, exits: AsyncExitStack) -> Path:
    data_dir = stack.options.folder / "data-1"
    stack.disk = SmallDisk.mounted(data_dir)
    exits.callback(stack.disk.close)
    stack.places = Places((data_dir,))
    config = stack.options.folder / "data.toml"
    config.write_text(stack.options.config)
    return config


async def _company(stack: Stack, exits: AsyncExitStack) -> Path:
    servers = await _start_servers(stack, exits)
    postgres, redis = cast(PostgresServer, servers["postgres"]), cast(RedisServer, servers["redis"])
    elasticsearch, qdrant = cast(ElasticsearchServer, servers["elasticsearch"]), cast(QdrantPeer, servers["qdrant"])
    for server, name in (
        (postgres, "postgres"),
        (redis, "redis"),
        (elasticsearch, "elasticsearch"),
        (qdrant, "qdrant"),
    ):
        await _add_proxy(stack, name, server.port, exits)
    owner = await asyncio.to_thread(postgres.database, PREFIX)
    options = options_for(owner)
    await asyncio.to_thread(migrate, options)
    data_dirs = tuple(stack.options.folder / name for name in ("data-1", "data-2"))
    stack.places = Places(data_dirs, owner, redis.url, elasticsearch.url, qdrant.url)
    config = stack.options.folder / "data.toml"
    dsn = conninfo.make_conninfo(options.dsn, port=stack.proxies["postgres"].port)
    config.write_text(_company_toml(dsn, stack.proxies, stack.options.queue))
    return config


async def _start_servers(stack: Stack, exits: AsyncExitStack) -> Mapping[str, Server]:
    makers: Mapping[str, Callable[[], Server]] = {
        "postgres": PostgresServer.create,
        "redis": RedisServer.create,
        "elasticsearch": ElasticsearchServer.create,
        "qdrant": QdrantPeer.create,
    }
    units = {name: ServerUnit(name, maker) for name, maker in makers.items()}
    for unit in units.values():
        exits.push_async_callback(unit.close)
    await asyncio.gather(*(unit.create() for unit in units.values()))
    stack.units.update(units)
    return {name: unit.server for name, unit in units.items()}


def _company_toml(dsn: str, proxies: Mapping[str, Proxy], queue: str) -> str:
    return f"""
[record_store]
adapter = "postgres"
dsn = "{dsn}"

[vector_index]
adapter = "qdrant"
url = "http://{proxies["qdrant"].address}"
prefix = "{PREFIX}"

[text_index]
adapter = "elasticsearch"
hosts = ["http://{proxies["elasticsearch"].address}"]
prefix = "{PREFIX}"
replicas = 0

[redis]
addresses = ["{proxies["redis"].address}"]
prefix = "{PREFIX}"

[cache]
adapter = "redis"

[queue]
adapter = "{queue}"
"""
