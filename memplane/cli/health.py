"""`memplane health`: whether a plane serves, told by exit code, for container health checks and scripts.

Imports little, for it is run every few seconds: `python -m memplane.cli.health` starts without the other commands.
"""

from typing import Any

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memplane.cli.session import Session, connection_options, pass_session
from memplane.client.tls import ClientTls, blocking_channel
from memplane.rpc.certificates import BadCertificate

DEFAULT_TIMEOUT_S = 3.0


@click.command(
    epilog="""\b
Services of a data plane: "" (it lives), memplane.v1.MemoryService (it answers reads) and
memplane.v1.MemoryService.Write (it takes writes). Of a control plane: "" and memplane.v1.PolicyDiscoveryService
(it has a policy to give).

\b
Examples:
  memplane health
  memplane health --target 10.0.0.7:7701 --service memplane.v1.MemoryService
  memplane health --target 10.0.0.5:7700"""
)
@click.option("--service", default="", metavar="NAME", help="Service to ask for; empty: whether the process lives.")
@click.option("--timeout-s", type=click.FloatRange(0.1, 60), default=DEFAULT_TIMEOUT_S, show_default=True)
@connection_options
@pass_session
def health(session: Session, /, service: str, timeout_s: float) -> None:
    """Asks the plane at --target (either kind) for its health. Exit code 0 when it is SERVING, else 1."""
    try:
        state = state_of(session.data_address, service, timeout_s, session.tls)
    except BadCertificate as error:
        raise click.ClickException(str(error)) from None
    if session.as_json:
        session.out.json({"target": session.data_address, "service": service, "state": state})
    else:
        session.out.line(state)
    if state != "SERVING":
        raise click.exceptions.Exit(1)


def state_of(address: str, service: str, timeout_s: float, tls: ClientTls | None = None) -> str:
    """SERVING, NOT_SERVING, SERVICE_UNKNOWN, or NO_ANSWER where nobody answers in time. Raises BadCertificate."""
    with blocking_channel(address, tls) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its published types lack the methods
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_s)
        except grpc.RpcError as error:
            unknown = isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.NOT_FOUND
            return "SERVICE_UNKNOWN" if unknown else "NO_ANSWER"
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


if __name__ == "__main__":
    health(prog_name="memplane health")
