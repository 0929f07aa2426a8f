import asyncio
import json
import subprocess
import sys

import grpc
from click.testing import CliRunner
from grpc_health.v1 import health

from memplane.cli.main import cli
from memplane.rpc.server import add_health_and_reflection, bind, new_server, set_health
from tests.unit.memplane.cli.test_commands import invoke

READS = "memplane.v1.MemoryService"


async def serving(reads: bool) -> tuple[grpc.aio.Server, str]:
    server = new_server([])
    port = bind(server, "127.0.0.1:0")
    servicer: health.aio.HealthServicer = add_health_and_reflection(server, ())
    await set_health(servicer, "", serving=True)
    await set_health(servicer, READS, serving=reads)
    await server.start()
    return server, f"127.0.0.1:{port}"


async def test_exit_code_is_0_for_a_service_that_serves_and_1_for_one_that_does_not() -> None:
    server, address = await serving(reads=False)
    lives = await invoke("health", "--target", address)
    reads = await invoke("health", "--target", address, "--service", READS, "--json")
    unknown = await invoke("health", "--target", address, "--service", "nonsense")
    await server.stop(0)
    assert (lives.exit_code, lives.output) == (0, "SERVING\n")
    assert (reads.exit_code, json.loads(reads.output)["state"]) == (1, "NOT_SERVING")
    assert (unknown.exit_code, unknown.output) == (1, "SERVICE_UNKNOWN\n")


def test_exit_code_is_1_where_nobody_answers() -> None:
    result = CliRunner().invoke(cli, ["health", "--target", "127.0.0.1:1", "--timeout-s", "0.5"])
    assert (result.exit_code, result.output) == (1, "NO_ANSWER\n")


async def test_the_module_runs_alone() -> None:
    server, address = await serving(reads=True)
    command = [sys.executable, "-m", "memplane.cli.health", "--target", address, "--service", READS]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30)
    await server.stop(0)
    assert (done.returncode, done.stdout) == (0, "SERVING\n")


def test_the_module_loads_no_other_command() -> None:
    loaded = "import sys, memplane.cli.health; print([m for m in sys.modules if m in ('numpy', 'memplane.cli.up')])"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True) == "[]\n"
