"""`memplane operation`: tells what became of a queued write, or how far long work is."""

from typing import Any

import click
from google.longrunning import operations_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from memplane.cli.output import Output, plain
from memplane.cli.session import CallFailed, Session, connection_options, pass_session, run
from memplane.cli.write import show_decision
from memplane.client.errors import from_status
from memplane.v1 import maintenance_service_pb2, memory_service_pb2

KNOWN: tuple[type[Message], ...] = (
    memory_service_pb2.WriteMemoryMetadata,
    memory_service_pb2.WriteMemoryResponse,
    maintenance_service_pb2.ReindexProgress,
    maintenance_service_pb2.ReindexResult,
)
"""What operations carry."""


@click.command(
    epilog="""\b
Examples:
  memplane operation operations/… --wait 10"""
)
@click.argument("name")
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait until it is done.")
@connection_options
@pass_session
def operation(session: Session, /, name: str, wait_s: float | None) -> None:
    """Tells what became of a queued write, or how far long work is.

    Exit code 1 when it failed, and when it is not done after --wait.
    """

    async def call() -> operations_pb2.Operation:
        async with session.memory() as client:
            return await (client.operation(name) if wait_s is None else client.wait_operation(name, wait_s))

    found = run(call())
    if session.as_json:
        session.out.json(values_of(found))
    if found.HasField("error"):
        raise CallFailed(from_status(found.error))
    if not found.done and wait_s is not None:
        raise click.ClickException(f"{name} is not done after {wait_s:g} s")
    if not session.as_json:
        show_operation(session.out, found)


def values_of(found: operations_pb2.Operation) -> dict[str, Any]:
    """The operation as JSON."""
    values: dict[str, Any] = {"name": found.name, "done": found.done, "metadata": _unpacked(found.metadata)}
    if found.HasField("response"):
        values["response"] = _unpacked(found.response)
    if found.HasField("error"):
        values["error"] = from_status(found.error).sentence()
    return values


def show_operation(out: Output, found: operations_pb2.Operation) -> None:
    """The operation for people."""
    response = memory_service_pb2.WriteMemoryResponse()
    if found.response.Unpack(response):
        show_decision(out, response)
        return
    out.line(f"{'DONE' if found.done else 'NOT DONE'} {found.name}", "green" if found.done else "yellow")
    rows = _unpacked(found.response if found.done else found.metadata)
    out.table(("field", "value"), list(rows.items()))


def _unpacked(packed: AnyMessage) -> dict[str, Any]:
    """What an Any holds, if it is known here."""
    for kind in KNOWN:
        message = kind()
        if packed.Unpack(message):
            return plain(message)
    return {}
