"""What deploy/compose starts, as processes: the same files, with addresses of this machine in their variables."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import yaml
from psycopg import conninfo

from memplane.cli.health import state_of
from memplane.client import AdminClient, MemPlaneClient
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PASSWORD, PostgresServer
from tests.servers.process import ServerProcess, environment, free_port, new_folder
from tests.servers.redis import RedisServer

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose"
MEMPLANE = str(Path(sys.executable).with_name("memplane"))
ENVOY = Path(sys.executable).with_name("envoy")
WRITES = "memplane.v1.MemoryService.Write"


@dataclass
class Plane:
    """A plane as `memplane control` or `memplane data` runs it, with its ports."""

    process: ServerProcess
    port: int
    metrics_port: int
    service: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it and waits until it serves what it is there for."""
        self.process.start(lambda: state_of(self.address, self.service, 1.0) == "SERVING", within_s=60)

    def calls(self, method: str) -> int:
        """How many calls of a method have ended here."""
        text = httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", trust_env=False, timeout=10).text
        counted = re.findall(rf'memplane_call_seconds_count{{code="OK",method="{method}"}} (\d+)', text)
        return sum(map(int, counted))


@dataclass
class Stack:
    """Both data planes behind the balancer, the control plane, and the administrator's key."""

    admin_key: str
    secrets: Mapping[str, str]
    control: Plane
    planes: list[Plane] = field(default_factory=list)
    balancer: str = ""

    def memory(self) -> MemPlaneClient:
        return MemPlaneClient(self.balancer, self.admin_key)

    def admin(self) -> AdminClient:
        return AdminClient(self.control.address, self.admin_key)


def new_secrets(folder: Path) -> tuple[str, dict[str, str]]:
    """The administrator's key and the variables that `new-env.sh` makes."""
    target = folder / ".env"
    done = subprocess.run(
        ["sh", str(COMPOSE / "new-env.sh"), str(target)], check=True, capture_output=True, text=True, timeout=30
    )
    lines = [line for line in target.read_text().splitlines() if line and not line.startswith("#")]
    return done.stdout.strip().rpartition("=")[2], dict(line.split("=", 1) for line in lines)


@contextmanager
def compose_stack(elasticsearch: ElasticsearchServer) -> Iterator[Stack]:
    """Everything but Elasticsearch is started here and ended with the block."""
    with ExitStack() as stack:
        folder = new_folder("compose")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        admin_key, secrets = new_secrets(folder)
        variables = _stores(stack, secrets, elasticsearch)
        control = _control(folder, secrets)
        stack.callback(control.process.close)
        control.start()
        made = Stack(admin_key, secrets, control)
        for number in (1, 2):
            plane = _data(folder, number, {**variables, "MEMPLANE_CONTROL_ADDRESS": control.address})
            stack.callback(plane.process.close)
            plane.start()
            made.planes.append(plane)
        made.balancer = _balancer(stack, made.planes)
        yield made


def _stores(stack: ExitStack, secrets: Mapping[str, str], elasticsearch: ElasticsearchServer) -> dict[str, str]:
    postgres, redis = PostgresServer.create(), RedisServer.create(password=secrets["MEMPLANE_REDIS_PASSWORD"])
    qdrant = QdrantPeer.create(api_key=secrets["MEMPLANE_QDRANT_API_KEY"])
    for server in (postgres, redis, qdrant):
        stack.callback(server.close)
    return {
        **secrets,
        "MEMPLANE_POSTGRES_DSN": _migrated(postgres, secrets),
        "MEMPLANE_QDRANT_URL": qdrant.url,
        "MEMPLANE_ELASTICSEARCH_URL": elasticsearch.url,
        "MEMPLANE_REDIS_ADDRESS": f"127.0.0.1:{redis.port}",
    }


def _migrated(postgres: PostgresServer, secrets: Mapping[str, str]) -> str:
    """What the image's first start and `migrate` do; the DSN of the data planes."""
    access = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGPASSWORD": PASSWORD}
    path = f"{postgres.binaries / 'bin'}:{os.defpath}"
    variables = environment({**access, **secrets, "PATH": path})
    subprocess.run(["sh", str(COMPOSE / "postgres" / "owner.sh")], env=variables, check=True, timeout=60)
    owner = postgres.dsn_of("memplane", "memplane_owner", secrets["MEMPLANE_OWNER_PASSWORD"])
    app = conninfo.make_conninfo(owner, user="memplane_app", password=secrets["MEMPLANE_APP_PASSWORD"])
    variables = {"MEMPLANE_POSTGRES_DSN": app, "MEMPLANE_MIGRATE_MIGRATE_DSN": owner}
    command = [MEMPLANE, "migrate", "--config", str(COMPOSE / "memplane.toml")]
    subprocess.run(command, env=environment(variables), check=True, timeout=60)
    return app


def _control(folder: Path, secrets: Mapping[str, str]) -> Plane:
    port, metrics_port = free_port(), free_port()
    hashes = {name: value for name, value in secrets.items() if name.endswith("_SHA256")}
    variables = {
        **hashes,
        "MEMPLANE_HOME": str(folder),
        "MEMPLANE_POLICIES": str(ROOT / "policies" / "default"),
        "MEMPLANE_CONTROL_CONFIG": str(COMPOSE / "memplane.toml"),
        "MEMPLANE_CONTROL_LISTEN": f"127.0.0.1:{port}",
        "MEMPLANE_CONTROL_METRICS_LISTEN": f"127.0.0.1:{metrics_port}",
    }
    process = ServerProcess("control", new_folder("control"), [MEMPLANE, "control"], environment=variables)
    return Plane(process, port, metrics_port, "memplane.v1.PolicyDiscoveryService")


def _data(folder: Path, number: int, variables: Mapping[str, str]) -> Plane:
    port, metrics_port = free_port(), free_port()
    own = {
        "HOSTNAME": f"host{number}",
        "MEMPLANE_HOME": str(new_folder(f"data-{number}")),
        "MEMPLANE_TRUSTED_KEY": str(folder / "control" / "signing_key.pub"),
        "MEMPLANE_DATA_CONFIG": str(COMPOSE / "memplane.toml"),
        "MEMPLANE_DATA_LISTEN": f"127.0.0.1:{port}",
        "MEMPLANE_DATA_METRICS_LISTEN": f"127.0.0.1:{metrics_port}",
        "MEMPLANE_DATA_EMBEDDER": "hash",
    }
    home = Path(own["MEMPLANE_HOME"])
    process = ServerProcess(f"data {number}", home, [MEMPLANE, "data"], environment={**variables, **own})
    return Plane(process, port, metrics_port, WRITES)


def _balancer(stack: ExitStack, planes: list[Plane]) -> str:
    folder, port, admin_port = new_folder("envoy"), free_port(), free_port()
    config = folder / "envoy.json"
    config.write_text(json.dumps(_with_addresses(port, admin_port, [plane.port for plane in planes])))
    process = ServerProcess("Envoy", folder, [str(ENVOY), "-c", str(config), "--log-level", "warning"])
    stack.callback(process.close)
    process.start(lambda: state_of(f"127.0.0.1:{port}", WRITES, 1.0) == "SERVING", within_s=30)
    return f"127.0.0.1:{port}"


def _with_addresses(port: int, admin_port: int, upstreams: list[int]) -> Any:
    """The balancer's file with this machine's ports: there is no name `data` here that stands for both planes."""
    config = yaml.safe_load((COMPOSE / "envoy.yaml").read_text())
    config["admin"]["address"] = _socket(admin_port)
    [listener] = config["static_resources"]["listeners"]
    listener["address"] = _socket(port)
    [cluster] = config["static_resources"]["clusters"]
    [locality] = cluster["load_assignment"]["endpoints"]
    locality["lb_endpoints"] = [{"endpoint": {"address": _socket(upstream)}} for upstream in upstreams]
    return config


def _socket(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def plain_channel(address: str) -> grpc.aio.Channel:
    """A channel that never tries again."""
    return grpc.aio.insecure_channel(address, options=[("grpc.enable_retries", 0)])
