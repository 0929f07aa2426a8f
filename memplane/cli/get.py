"""`memplane get`: reads one memory."""

import click

from memplane.cli.output import Output, plain
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.v1 import memory_pb2


@click.command(
    epilog="""\b
Examples:
  memplane get dept.sales.agent_a mem_… --version 1"""
)
@click.argument("namespace")
@click.argument("memory_id")
@click.option("--version", type=click.IntRange(min=1), default=None, help="An old version; the current one by default.")
@connection_options
@pass_session
def get(session: Session, /, namespace: str, memory_id: str, version: int | None) -> None:
    """Reads one memory, as it is or as it was."""

    async def call() -> memory_pb2.Memory:
        async with session.memory() as client:
            return await client.get(namespace, memory_id, version or 0)

    memory = run(call())
    if session.as_json:
        session.out.json(plain(memory))
    else:
        show_memory(session.out, memory)


def show_memory(out: Output, memory: memory_pb2.Memory) -> None:
    """Every field that is set, for people."""
    rows = [(name, value) for name, value in plain(memory).items() if value not in ("", [], {}, 0, None)]
    out.table(("field", "value"), rows)
