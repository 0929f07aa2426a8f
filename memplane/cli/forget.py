"""`memplane forget`: forgets one memory."""

from typing import Any

import click

from memplane.cli.output import enum_name, plain
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.cli.write import given
from memplane.v1 import memory_service_pb2 as pb


@click.command(
    epilog="""\b
Examples:
  memplane forget dept.sales.agent_a mem_… --reason "asked to"
  memplane forget dept.sales.agent_a mem_… --hard"""
)
@click.argument("namespace")
@click.argument("memory_id")
@click.option("--hard", is_flag=True, help="Remove content, versions and embeddings; nothing brings them back.")
@click.option("--etag", help="Forget it only if it is still at this version.")
@click.option("--reason", help="Why, for the record.")
@click.option("--request-id", help="Makes retries safe.")
@connection_options
@pass_session
def forget(session: Session, /, namespace: str, memory_id: str, hard: bool, **options: Any) -> None:
    """Forgets one memory: found by nothing from now on; --hard also removes its content."""

    async def call() -> pb.ForgetMemoryResponse:
        async with session.memory() as client:
            return await client.forget(namespace, memory_id, "HARD" if hard else "SOFT", **given(options))

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
        return
    session.out.line(f"forgot {response.id} ({enum_name(response, 'mode')})", "green")
    if response.pending_backends:
        session.out.note(f"still to be removed from: {', '.join(response.pending_backends)}; no search returns it")
