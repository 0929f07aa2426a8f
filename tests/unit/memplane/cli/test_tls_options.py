import json
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health

from memplane.cli.main import cli
from memplane.rpc.server import add_health_and_reflection, bind, new_server, set_health
from tests.certificates import Authority, write_pair
from tests.unit.memplane.cli.test_commands import invoke

AUTHORITY = Authority()


async def serving() -> tuple[grpc.aio.Server, str]:
    own = AUTHORITY.sign()
    server = new_server([])
    credentials = grpc.ssl_server_credentials([(own.key, own.certificate)], AUTHORITY.pem, require_client_auth=True)
    port = bind(server, "127.0.0.1:0", credentials)
    servicer: health.aio.HealthServicer = add_health_and_reflection(server, ())
    await set_health(servicer, "", serving=True)
    await server.start()
    return server, f"127.0.0.1:{port}"


async def test_health_shows_the_certificate_that_options_name(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, AUTHORITY.agent())
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    server, address = await serving()
    own = ("--tls-cert", str(certificate), "--tls-key", str(key))
    trusting = await invoke("health", "--target", address, "--tls-ca", str(tmp_path / "ca.crt"), *own)
    showing_none = await invoke("health", "--target", address, "--tls-ca", str(tmp_path / "ca.crt"), "--json")
    await server.stop(0)
    assert (trusting.exit_code, trusting.output) == (0, "SERVING\n")
    assert (showing_none.exit_code, json.loads(showing_none.output)["state"]) == (1, "NO_ANSWER")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--tls-ca", "ca.crt", "--tls-cert", "a"), "--tls-cert goes with --tls-key"),
        (("--tls-cert", "a", "--tls-key", "b"), "--tls-ca is required"),
        (("--tls-server-name", "plane.example"), "--tls-ca is required"),
        (("--tls-ca", "/nowhere/ca.crt"), "/nowhere/ca.crt: No such file or directory"),
    ],
)
@pytest.mark.parametrize("command", [("health",), ("get", "dept", "mem_1")])
def test_options_that_cannot_be_used_are_named(command: tuple[str, ...], options: tuple[str, ...], says: str) -> None:
    result = CliRunner().invoke(cli, [*command, *options])
    assert result.exit_code in (1, 2)
    assert says in result.output


def test_the_environment_gives_them_too() -> None:
    result = CliRunner().invoke(cli, ["health"], env={"MEMPLANE_TLS_CA": "/nowhere/ca.crt"})
    assert "/nowhere/ca.crt: No such file" in result.output
