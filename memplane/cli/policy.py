"""`memplane policy`: checks, reloads and shows policy."""

import json
from pathlib import Path
from typing import Any

import click
from google.protobuf.json_format import MessageToDict

from memplane.cli.output import Output, plain, short_time
from memplane.cli.policy_cases import test
from memplane.cli.policy_explain import explain
from memplane.cli.policy_revisions import diff, rollback, show_accesses
from memplane.cli.policy_set import FOLDER, has_errors, read_documents, show_diagnostics, style_of
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2


@click.group()
def policy() -> None:
    """Checks, reloads and shows policy."""


policy.add_command(explain)
policy.add_command(test)
policy.add_command(diff)
policy.add_command(rollback)


@policy.command(
    epilog="""\b
Examples:
  memplane policy validate ./policies
  memplane policy validate            # the folder that the control plane watches"""
)
@FOLDER
@connection_options
@pass_session
def validate(session: Session, /, folder: Path | None) -> None:
    """Checks a policy folder and changes nothing. Exit code 1 when it has errors."""

    async def call() -> pb.ValidatePolicySetResponse:
        async with session.admin() as client:
            return await client.validate(read_documents(folder) if folder else None)

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_diagnostics(session.out, list(response.diagnostics), response.total_diagnostics)
        session.out.line(f"valid: {response.version_info}" if response.valid else "not valid", style_of(response.valid))
    if not response.valid:
        raise click.exceptions.Exit(1)


@policy.command(
    epilog="""\b
Examples:
  memplane policy reload --wait 10 --comment "fewer hits"   # the folder that the control plane watches
  memplane policy reload ./policies --dry-run
  memplane policy reload ./policies --diff                  # who gains or loses access, first"""
)
@FOLDER
@click.option("--dry-run", "validate_only", is_flag=True, help="Check and answer, change nothing.")
@click.option(
    "--diff",
    "tells_diff",
    is_flag=True,
    help="Tell who gains or loses access before it applies; not if another revision comes in between.",
)
@click.option("--wait", "wait_s", type=click.FloatRange(0, 60), default=10, show_default=True, help="Seconds for ACKs.")
@click.option("--comment", default="", help="Why, for the history.")
@click.option("--etag", default="", help="Reload only if this revision is still in force.")
@click.option("--allow-shrink", is_flag=True, help="Accept a set that removes namespaces or many grants.")
@connection_options
@pass_session
def reload(session: Session, /, folder: Path | None, wait_s: float, tells_diff: bool, **fields: Any) -> None:
    """Checks a policy set and puts it in force. Exit code 1 when it is refused or a data plane did not follow."""

    async def call() -> pb.ReloadPolicySetResponse:
        documents = read_documents(folder) if folder else None
        async with session.admin() as client:
            if tells_diff:
                fields["etag"] = fields["etag"] or (await client.revision()).etag  # what follows is told against it
                show_accesses(session.out, await client.diff(documents))
            return await client.reload(documents, wait_s, **fields)

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_reload(session.out, response)
    refused = not response.accepted and not fields["validate_only"]
    if (
        refused
        or has_errors(list(response.diagnostics))
        or response.propagation.nacked
        or (wait_s and response.propagation.pending)
    ):
        raise click.exceptions.Exit(1)


@policy.command(
    epilog="""\b
Examples:
  memplane policy show
  memplane policy show --generation 3 --json"""
)
@click.option("--generation", type=click.IntRange(min=0), default=0, help="An earlier one; 0 is the one in force.")
@connection_options
@pass_session
def show(session: Session, /, generation: int) -> None:
    """Shows a revision with its documents."""

    async def call() -> policy_pb2.PolicyRevision:
        async with session.admin() as client:
            return await client.revision(generation)

    revision = run(call())
    texts = {each.name: each.content.decode("utf-8", "replace") for each in revision.documents}
    if session.as_json:
        session.out.json({**plain(revision), "documents": texts})
        return
    session.out.line(f"generation {revision.generation}, {revision.version_info}", "bold")
    session.out.line(f"by {revision.author} ({revision.origin}) {short_time(revision.create_time)} {revision.comment}")
    for name, text in texts.items():
        session.out.line(f"\n# {name}", "bold")
        session.out.line(text.rstrip())


@policy.command(
    epilog="""\b
Examples:
  memplane policy history"""
)
@connection_options
@pass_session
def history(session: Session, /) -> None:
    """Lists the revisions, newest first."""

    async def call() -> list[policy_pb2.PolicyRevision]:
        async with session.admin() as client:
            return [revision async for revision in client.revisions()]

    revisions = run(call())
    if session.as_json:
        session.out.json([plain(revision) for revision in revisions])
        return
    rows = [
        (
            each.generation,
            each.version_info[:19],
            short_time(each.create_time),
            each.author,
            each.origin,
            each.comment,
        )
        for each in revisions
    ]
    session.out.table(("generation", "version", "when", "who", "origin", "comment"), rows)


@policy.command(
    epilog="""\b
Examples:
  memplane policy effective dept.sales.agent_a
  memplane policy effective dept.sales --only retrieve_policy --json"""
)
@click.argument("namespace")
@click.option("--only", metavar="PREFIX", default="", help="Only values whose path starts so.")
@connection_options
@pass_session
def effective(session: Session, /, namespace: str, only: str) -> None:
    """Tells the policy that governs a namespace, and the file and line of each value."""

    async def call() -> pb.GetEffectivePolicyResponse:
        async with session.admin() as client:
            return await client.effective(namespace)

    answer = run(call())
    kept = [each for each in answer.values if each.path.startswith(only)]
    if session.as_json:
        session.out.json({**plain(answer), "values": [plain(each) for each in kept]})
        return
    rows = [(each.path, _value(each), _origin(each), each.layer) for each in kept]
    session.out.line(f"generation {answer.generation}, {answer.version_info}")
    session.out.table(("path", "value", "from", "layer"), rows)


def show_reload(out: Output, response: pb.ReloadPolicySetResponse) -> None:
    """What became of a reload, for people."""
    show_diagnostics(out, list(response.diagnostics), response.total_diagnostics)
    revision, spread = response.revision, response.propagation
    state = "accepted" if response.accepted else "nothing changed"
    out.line(f"{state}: generation {revision.generation}, {revision.version_info}", style_of(response.accepted))
    out.line(
        f"data planes: {spread.connected} connected, {spread.acked} acknowledged, {spread.nacked} refused, "
        f"{spread.pending} pending" + (f"; {spread.lost} lost ones may serve an older policy" if spread.lost else "")
    )


def _origin(value: policy_pb2.EffectiveValue) -> str:
    return f"{value.file}:{value.line}" if value.file else "built in"


def _value(value: policy_pb2.EffectiveValue) -> str:
    """The value as YAML and JSON both write it; whole numbers without a point."""
    plain_value: Any = MessageToDict(value.value)
    whole = isinstance(plain_value, float) and plain_value.is_integer()
    return json.dumps(int(plain_value) if whole else plain_value, ensure_ascii=False)
