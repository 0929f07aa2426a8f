"""`memplane search`: finds the memories that answer a question."""

from typing import Any

import click

from memplane.cli.output import Output, enum_name, plain, shorten
from memplane.cli.session import INSTANT, KINDS, LAYERS, Command, Session, connection_options, pass_session, run
from memplane.cli.write import given, show_degraded
from memplane.v1 import memory_service_pb2 as pb


def search_options(command: Command) -> Command:
    """Adds the options of `search` and `context`."""
    options = (
        click.option("--top-k", type=click.IntRange(1, 1000), help="How many hits; the policy's by default."),
        click.option("--subject", "subject_id", help="Only memories about this subject."),
        click.option("--layer", "layers", type=LAYERS, multiple=True, help="Only this layer; may be repeated."),
        click.option("--kind", "kinds", type=KINDS, multiple=True, help="Only this kind; may be repeated."),
        click.option("--also", "namespaces", multiple=True, metavar="NAMESPACE", help="Search here too."),
        click.option("--include-shared", is_flag=True, help="Also shared memories of the namespaces above."),
        click.option("--include-cold", is_flag=True, help="Also memories that have faded."),
        click.option("--min-confidence", type=click.FloatRange(0, 1), help="Leave out hits below this."),
        click.option(
            "--context-turn", "context_turns", multiple=True, help="A turn before the question, oldest first."
        ),
        click.option("--task-type", help="What the answer is for."),
        click.option("--reference-time", type=INSTANT, help='The "now" of the question.'),
        click.option("--as-of", type=INSTANT, help="Answer from what was believed then."),
        click.option("--at-least-as-fresh", metavar="TOKEN", help="Token of a write that the answer must include."),
        click.option("--no-record-access", is_flag=True, help="Do not count the hits as accesses."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def search_fields(options: dict[str, Any]) -> dict[str, Any]:
    """The request's fields from the options that were given."""
    fields = given(options)
    if fields.pop("no_record_access", False):
        fields["record_access"] = False
    return fields


@click.command(
    epilog="""\b
Examples:
  memplane search dept.sales.agent_a "When does Acme renew?"
  memplane search dept.sales "谁负责华东区?" --top-k 3 --explain
  memplane search dept.sales "INV-2024-0031" --json"""
)
@click.argument("namespace")
@click.argument("query")
@search_options
@click.option("--explain", is_flag=True, help="Say what each score is made of.")
@connection_options
@pass_session
def search(session: Session, /, namespace: str, query: str, **options: Any) -> None:
    """Finds the memories that answer a question, best first."""

    async def call() -> pb.SearchMemoriesResponse:
        async with session.memory() as client:
            return await client.search(namespace, query, **search_fields(options))

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_hits(session.out, response)


def show_hits(out: Output, response: pb.SearchMemoriesResponse) -> None:
    """The hits for people."""
    rows = [
        (hit.rank, hit.score, enum_name(hit.memory, "layer"), hit.memory.id, shorten(hit.memory.content, 160))
        for hit in response.hits
    ]
    if rows:
        out.table(("rank", "score", "layer", "id", "content"), rows)
    else:
        out.line("no hits")
    for hit in response.hits:
        if hit.explanation:
            out.line(f"{hit.rank}. {hit.explanation}", "dim")
    if response.omitted_namespaces:
        out.note(f"not readable: {', '.join(response.omitted_namespaces)}", "yellow")
    out.line(f"policy {response.policy_version}", "dim")
    show_degraded(out, response.degraded)
