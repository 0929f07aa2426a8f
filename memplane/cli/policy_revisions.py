"""`memplane policy diff` and `memplane policy rollback`: what would change, and the way back."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value
from rich.text import Text

from memplane.cli.output import Output, enum_name, plain, shorten
from memplane.cli.policy_set import FOLDER, has_errors, read_documents, show_diagnostics, show_progress
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2

_VALUE_CHARS = 60
_WORDS = {
    policy_pb2.ACCESS_EXTENT_NONE: "no",
    policy_pb2.ACCESS_EXTENT_CONDITIONAL: "in part",
    policy_pb2.ACCESS_EXTENT_ALL: "yes",
}


@click.command(
    epilog="""\b
Examples:
  memplane policy diff                       # the folder that the control plane watches, against what is in force
  memplane policy diff ./policies
  memplane policy diff --generation 3        # what going back to generation 3 would change
  memplane policy diff --generation 5 --base 4 --json"""
)
@FOLDER
@click.option("--generation", type=click.IntRange(min=0), default=0, help="Propose an earlier generation instead.")
@click.option("--base", type=click.IntRange(min=0), default=0, help="Compare with this one; 0 is the one in force.")
@connection_options
@pass_session
def diff(session: Session, /, folder: Path | None, generation: int, base: int) -> None:
    """Tells which values and whose accesses would change. Exit code 1 when what is proposed has errors."""
    if folder and generation:
        raise click.UsageError("give a folder or --generation, not both")

    async def call() -> pb.DiffPolicySetResponse:
        async with session.admin() as client:
            return await client.diff(read_documents(folder) if folder else None, generation, base)

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_difference(session.out, response)
    if has_errors(list(response.diagnostics)):
        raise click.exceptions.Exit(1)


@click.command(
    epilog="""\b
Examples:
  memplane policy rollback 3 --comment "4 locked the auditors out"
  memplane policy diff --generation 3        # what it would change"""
)
@click.argument("generation", type=click.IntRange(min=1))
@click.option("--wait", "wait_s", type=click.FloatRange(0, 60), default=10, show_default=True, help="Seconds for ACKs.")
@click.option("--comment", default="", help="Why, for the history.")
@click.option("--etag", default="", help="Only if this revision is still in force.")
@click.option("--allow-shrink", is_flag=True, help="Accept a set that removes namespaces or many grants.")
@connection_options
@pass_session
def rollback(session: Session, /, generation: int, wait_s: float, **fields: Any) -> None:
    """Puts the documents of an earlier generation in force, as a new one. API keys stay as they are.

    Exit code 1 when they are refused or a data plane did not follow.
    """

    async def call() -> pb.RollbackPolicySetResponse:
        async with session.admin() as client:
            return await client.rollback(generation, wait_s, **fields)

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_diagnostics(session.out, list(response.diagnostics), response.total_diagnostics)
        show_progress(session.out, response.revision, response.propagation)
    if not response.accepted or response.propagation.nacked or (wait_s and response.propagation.pending):
        raise click.exceptions.Exit(1)


def show_difference(out: Output, response: pb.DiffPolicySetResponse) -> None:
    """What differs, for people: values, accesses, and what the shrink guard says."""
    show_diagnostics(out, list(response.diagnostics), response.total_diagnostics)
    if response.values:
        out.table(("path", "before", "after", "where"), [_value_row(each) for each in response.values], "values")
        _show_rest(out, response.total_values, response.values)
    elif not has_errors(list(response.diagnostics)):
        out.line("no value differs")
    show_accesses(out, response)
    for each in response.shrinks:
        out.line(f"--allow-shrink is needed: {each}", "yellow")


def show_accesses(out: Output, response: pb.DiffPolicySetResponse) -> None:
    """Who gains or loses what, for people; nothing of a set with errors, which was not compared."""
    if has_errors(list(response.diagnostics)):
        return
    if not response.accesses:
        out.line("nobody gains or loses access")
        return
    rows = [_access_row(each) for each in response.accesses]
    out.table(("", "principal", "namespace and below", "permission", "before", "after"), rows, "accesses")
    _show_rest(out, response.total_accesses, response.accesses)


def _show_rest(out: Output, total: int, told: Sequence[object]) -> None:
    if total > len(told):
        out.line(f"and {total - len(told)} more")


def _value_row(each: policy_pb2.PolicyValueChange) -> tuple[object, ...]:
    before = _shown(each.before) if each.HasField("before") else "–"
    after = _shown(each.after) if each.HasField("after") else "–"
    return each.path, Text(before, style="red"), Text(after, style="green"), _place(each)


def _place(each: policy_pb2.PolicyValueChange) -> str:
    return f"{each.file}:{each.line}" if each.file else "built in"


def _shown(value: Value) -> str:
    """As JSON, whole numbers without a point."""
    given: Any = MessageToDict(value)
    whole = isinstance(given, float) and given.is_integer()
    return shorten(json.dumps(int(given) if whole else given, ensure_ascii=False), _VALUE_CHARS)


def _access_row(each: policy_pb2.AccessChange) -> tuple[object, ...]:
    word, style = _judged(each)
    before, after = (_WORDS.get(extent, enum_name(each, "after")) for extent in (each.before, each.after))
    return Text(word, style=style), each.principal, each.namespace, each.permission, before, Text(after, style=style)


def _judged(each: policy_pb2.AccessChange) -> tuple[str, str]:
    if each.after > each.before:
        return "gains", "green"
    if each.after < each.before:
        return "loses", "red"
    return ("differs", "yellow") if each.after == policy_pb2.ACCESS_EXTENT_CONDITIONAL else ("keeps", "dim")
