"""Data planes are restarted one after the other under load, and connections are renewed. About 20 s."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dataplane.adapters.postgres.migrate import migrate
from memplane.builtin import policies_folder
from memplane.client import MemPlaneClient
from tests.deadline import eventually, eventually_async
from tests.e2e.control_process import ADMIN_KEY, ControlProcess
from tests.e2e.data_process import READS, DataProcess
from tests.postgres import options_for
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port
from tests.servers.redis import RedisServer

NAMESPACE = "dept.sales.agent_a"
CALLERS = 4


@dataclass
class Fleet:
    """A control plane, and data planes on fixed ports that share PostgreSQL and Redis."""

    control: ControlProcess
    config: Path
    folder: Path
    data: list[DataProcess] = field(default_factory=list)

    async def add(self, *flags: str) -> DataProcess:
        """Starts one more data plane."""
        name = f"data-{len(self.data) + 1}"
        given = ("--config", str(self.config), "--node-id", name, "--listen", f"127.0.0.1:{free_port()}", *flags)
        plane = DataProcess(self.folder / name, self.control.address, self.control.data_dir / "signing_key.pub", given)
        self.data.append(plane)
        await plane.start(60)
        await plane.wait_ready()
        return plane

    def target(self) -> str:
        """All of them, as a client is given it."""
        return "ipv4:" + ",".join(plane.address for plane in self.data)


@asynccontextmanager
async def fleet(folder: Path, postgres: PostgresServer, redis: RedisServer) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        options = options_for(postgres.database("rolling"))
        stack.callback(postgres.drop, "rolling")
        await asyncio.to_thread(migrate, options)
        config = folder / "memplane.toml"
        config.write_text(
            f'[record_store]\nadapter = "postgres"\ndsn = "{options.dsn}"\n'
            f'[redis]\naddresses = ["{redis.url.removeprefix("redis://").rstrip("/").partition("/")[0]}"]\n'
            'prefix = "rolling"\n[cache]\nadapter = "redis"\n[queue]\nadapter = "redis"\n'
        )
        shutil.copytree(policies_folder("examples/evaluation"), folder / "policies")
        control = ControlProcess(folder / "control", folder / "policies", flags=("--max-connection-age-s", "4"))
        await control.start()
        stack.push_async_callback(control.kill)
        made = Fleet(control, config, folder)

        async def kill_all() -> None:
            for plane in made.data:
                await plane.kill()

        stack.push_async_callback(kill_all)
        yield made


class Load:
    """Callers that write and search without a pause; every call must succeed."""

    def __init__(self, target: str):
        self.target = target
        self.done = 0
        self.written: dict[str, str] = {}
        self._stopping = False

    async def run(self) -> None:
        async with MemPlaneClient(self.target, ADMIN_KEY, timeout_s=20.0) as client:
            await asyncio.gather(*(self._call(client, number) for number in range(CALLERS)))

    def stop(self) -> None:
        self._stopping = True

    async def _call(self, client: MemPlaneClient, caller: int) -> None:
        number = 0
        while not self._stopping:
            number += 1
            content = f"Order {caller}-{number} is {number * 7} chairs"
            answer = await client.write(NAMESPACE, content, subject_id=f"s{caller}-{number}")
            self.written[answer.memory.id] = content
            await client.search(NAMESPACE, f"order {caller}-{number}")
            self.done += 2


@pytest.mark.slow
async def test_a_rolling_restart_under_load_loses_no_call_and_new_replicas_get_traffic(
    tmp_path: Path, postgres_server: PostgresServer, redis_server: RedisServer
) -> None:
    async with fleet(tmp_path, postgres_server, redis_server) as made:
        for _ in range(2):
            await made.add("--drain-s", "2", "--max-connection-age-s", "2", "--max-connection-age-grace-s", "5")
        load = Load(made.target())
        running = asyncio.create_task(load.run())
        await eventually(lambda: bool(load.done) or running.done(), bool, 30)
        for plane in made.data:
            before = load.done
            await _restart(plane)
            await eventually(partial(_went_on, load, running, before), bool, 30)
        load.stop()
        await running
        assert len(load.written) * 2 == load.done
        await _a_new_replica_gets_traffic(made)
        await _all_is_there(made, load)
        _nothing_was_said_of_connections([made.control.log_file, *(plane.log_file for plane in made.data)])


def _went_on(load: Load, running: asyncio.Task[None], before: int) -> bool:
    return load.done > before + 8 or running.done()


async def _restart(plane: DataProcess) -> None:
    """Health says NOT_SERVING while calls are still taken."""
    async with plane.channel() as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its published types lack the methods
        states = stub.Watch(health_pb2.HealthCheckRequest(service=READS))
        seen = [(await states.read()).status]
        stopping = asyncio.create_task(plane.stop())
        seen.append((await states.read()).status)
    await stopping
    assert seen == [health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING]
    await plane.start(60)
    await plane.wait_ready()


async def _a_new_replica_gets_traffic(made: Fleet) -> None:
    """A balancer of connections stands before the data planes: first before one, then before another as well."""
    behind = [made.data[0].address]
    served: Counter[str] = Counter()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = behind[sum(served.values()) % len(behind)]
        served[address] += 1
        there, back = await asyncio.open_connection(*address.rsplit(":", 1))
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    balancer = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    load = Load(f"127.0.0.1:{balancer.sockets[0].getsockname()[1]}")
    running = asyncio.create_task(load.run())
    await eventually(lambda: bool(served), bool, 10)
    behind.append(made.data[1].address)
    await eventually(lambda: running.done() or served[behind[1]], bool, 15)
    load.stop()
    await running
    balancer.close()
    assert served[behind[1]]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _all_is_there(made: Fleet, load: Load) -> None:
    async with MemPlaneClient(made.target(), ADMIN_KEY) as client:

        async def missing() -> set[str]:
            listed = {memory.id: memory.content async for memory in client.list(NAMESPACE, page_size=1_000)}
            assert len(set(listed.values())) == len(listed)
            return set(load.written) - set(listed)

        await eventually_async(missing, lambda lost: not lost, 10)


def _nothing_was_said_of_connections(logs: Sequence[Path]) -> None:
    """Policy streams were renewed several times meanwhile."""
    for log in logs:
        lines = log.read_text().splitlines()
        assert [line for line in lines if "no policy stream" in line or "ERROR memplane.rpc" in line] == []
