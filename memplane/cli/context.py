"""`memplane context`: lays out memories as a block for a prompt."""

from typing import Any

import click

from memplane.cli.output import plain
from memplane.cli.search import search_fields, search_options
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.cli.write import show_degraded
from memplane.v1 import memory_service_pb2 as pb


@click.command(
    epilog="""\b
Examples:
  memplane context dept.sales.agent_a "What do I need to know before calling Acme?" --token-budget 400"""
)
@click.argument("namespace")
@click.argument("query")
@click.option(
    "--token-budget", type=click.IntRange(16, 100_000), default=None, help="Most tokens; the policy's by default."
)
@search_options
@connection_options
@pass_session
def context(session: Session, /, namespace: str, query: str, token_budget: int | None, **options: Any) -> None:
    """Lays out the memories that answer a question as a block for a prompt."""

    async def call() -> pb.GetContextResponse:
        async with session.memory() as client:
            return await client.context(namespace, query, token_budget or 0, **search_fields(options))

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
        return
    session.out.line(response.context)
    session.out.note(f"{len(response.memory_ids)} memories, {response.token_count} tokens, {response.omitted} left out")
    show_degraded(session.out, response.degraded)
