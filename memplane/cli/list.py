"""`memplane list`: lists a namespace's memories."""

from typing import Any

import click

from memplane.cli.output import enum_name, plain, shorten
from memplane.cli.session import KINDS, LAYERS, STATES, Session, connection_options, pass_session, run
from memplane.cli.write import given
from memplane.v1 import memory_pb2


@click.command(
    "list",
    epilog="""\b
Examples:
  memplane list dept.sales.agent_a --layer LONG_TERM
  memplane list dept.sales.agent_a --state SUPERSEDED --first 0 --json""",
)
@click.argument("namespace")
@click.option("--first", type=click.IntRange(min=0), default=50, show_default=True, help="How many; 0 is all.")
@click.option("--subject", "subject_id", help="Only about this subject.")
@click.option("--layer", "layers", type=LAYERS, multiple=True, help="Only this layer; may be repeated.")
@click.option("--kind", "kinds", type=KINDS, multiple=True, help="Only this kind; may be repeated.")
@click.option("--state", "states", type=STATES, multiple=True, help="Only this state; ACTIVE and COLD by default.")
@connection_options
@pass_session
def list_memories(session: Session, /, namespace: str, first: int, **options: Any) -> None:
    """Lists a namespace's memories, newest first."""

    async def call() -> list[memory_pb2.Memory]:
        found: list[memory_pb2.Memory] = []
        fields = {**given(options), "page_size": min(first, 1000) or 1000}
        async with session.memory() as client:
            async for memory in client.list(namespace, **fields):
                found.append(memory)
                if len(found) == first:
                    break
        return found

    memories = run(call())
    if session.as_json:
        session.out.json([plain(memory) for memory in memories])
        return
    rows = [
        (each.id, enum_name(each, "layer"), enum_name(each, "state"), each.version, shorten(each.content))
        for each in memories
    ]
    session.out.table(("id", "layer", "state", "version", "content"), rows)
