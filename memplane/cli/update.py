"""`memplane update`: changes fields of a memory."""

from typing import Any

import click

from memplane.cli.output import plain
from memplane.cli.session import INSTANT, SENSITIVITIES, Session, connection_options, pass_session, run
from memplane.cli.write import fact_options, given, show_degraded
from memplane.v1 import memory_service_pb2 as pb

GUARDS = ("etag", "reason", "request_id")


@click.command(
    epilog="""\b
Examples:
  memplane update dept.sales.agent_a mem_… --content "Acme renews in April" --reason "moved by a month\""""
)
@click.argument("namespace")
@click.argument("memory_id")
@click.option("--content", help="The new text.")
@fact_options
@click.option("--sensitivity", type=SENSITIVITIES, help="How sensitive the content is.")
@click.option("--expire-time", type=INSTANT, help="When it may be removed.")
@click.option("--etag", help="Change it only if it is still at this version.")
@click.option("--reason", help="Why, for the history.")
@click.option("--request-id", help="Makes retries safe.")
@connection_options
@pass_session
def update(session: Session, /, namespace: str, memory_id: str, **options: Any) -> None:
    """Changes the given fields of a memory and keeps the old version."""
    changes = given(options)
    guard = {name: changes.pop(name) for name in GUARDS if name in changes}
    if not changes:
        raise click.UsageError("nothing to change: give --content or another field")

    async def call() -> pb.UpdateMemoryResponse:
        async with session.memory() as client:
            return await client.update(namespace, memory_id, changes, **guard)  # type: ignore[arg-type]  # the names of GUARDS

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
        return
    session.out.line(f"updated {response.memory.id} to version {response.memory.version}", "green")
    show_degraded(session.out, response.degraded)
