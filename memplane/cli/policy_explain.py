"""`memplane policy explain`: who may do what, and by which rule."""

from pathlib import Path
from typing import Any

import click

from memplane.cli.output import Output, plain
from memplane.cli.policy_set import read_documents, style_of
from memplane.cli.session import KINDS, LAYERS, SENSITIVITIES, Session, connection_options, pass_session, run
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2


@click.command(
    epilog="""\b
Examples:
  memplane policy explain sales-assistant memory.read dept.sales.agent_a
  memplane policy explain sales-assistant memory.write dept.sales --kind INSTRUCTION --json
  memplane policy explain token:zoe memory.read dept.sales --claim sales-staff --folder ./policies"""
)
@click.argument("principal")
@click.argument("permission")
@click.argument("namespace", default="")
@click.option("--claim", "claims", multiple=True, help="A group that a token would claim; may be given again.")
@click.option("--layer", type=LAYERS, help="The memory's layer, where conditions ask for it.")
@click.option("--kind", type=KINDS, help="The memory's kind, where conditions ask for it.")
@click.option("--sensitivity", type=SENSITIVITIES, help="Its sensitivity, where conditions ask for it.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Asks these policy files instead of those in force.",
)
@connection_options
@pass_session
def explain(
    session: Session,
    /,
    principal: str,
    permission: str,
    namespace: str,
    claims: tuple[str, ...],
    folder: Path | None,
    **memory: Any,
) -> None:
    """Tells whether a principal may do something, and the rule that decides, with its file and line."""

    async def call() -> pb.ExplainDecisionResponse:
        documents = read_documents(folder) if folder else None
        async with session.admin() as client:
            return await client.explain(principal, permission, namespace, claims=claims, documents=documents, **memory)

    answer = run(call())
    if session.as_json:
        session.out.json({**plain(answer), "rules": [plain(rule) for rule in answer.rules]})
    else:
        _show(session.out, answer)


def _show(out: Output, answer: pb.ExplainDecisionResponse) -> None:
    out.line(answer.summary, style_of(answer.allowed))
    if answer.rules:
        heads = ("effect", "namespace", "permissions", "only", "through", "at")
        out.table(heads, [_row(rule) for rule in answer.rules])
    origin = f"generation {answer.generation}" if answer.generation else "files that are not in force"
    out.line(f"{origin}, {answer.version_info}")


def _row(rule: policy_pb2.AccessRule) -> tuple[str, ...]:
    place = f"{rule.file}:{rule.line}" if rule.file else rule.path
    permissions, through = ", ".join(rule.permissions), ", ".join(rule.through)
    return rule.effect, rule.namespace, permissions, rule.condition, through, place
