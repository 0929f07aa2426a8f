"""`memplane write`: proposes one memory."""

import json
import sys
from datetime import timedelta
from typing import Any

import click

from memplane.cli.output import Output, enum_name, plain
from memplane.cli.session import (
    INSTANT,
    KINDS,
    LAYERS,
    POOLS,
    SOURCES,
    Command,
    Session,
    connection_options,
    pass_session,
    run,
)
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb


def fact_options(command: Command) -> Command:
    """Adds the options of `write` and `update` that describe a memory."""
    options = (
        click.option("--kind", type=KINDS, help="What sort of statement it is."),
        click.option("--source", type=SOURCES, help="Who stated it."),
        click.option("--speaker", help="Who said it."),
        click.option("--session", "session_id", help="The session it belongs to."),
        click.option("--sequence", type=click.IntRange(min=0), help="Order within the session, from 0."),
        click.option("--fact-key", help="Subject and attribute, such as user:42/drink: a new value replaces the old."),
        click.option("--entity-type", help="What the subject is, such as customer."),
        click.option("--category", help="Your category; policies refer to it."),
        click.option("--tag", "tags", multiple=True, help="Free label; may be repeated."),
        click.option("--confidence", type=click.FloatRange(0, 1), help="How sure the source is."),
        click.option("--event-time", type=INSTANT, help="When it happened or was said."),
        click.option("--valid-from", type=INSTANT, help="From when it holds."),
        click.option("--valid-to", type=INSTANT, help="Until when it held."),
        click.option("--metadata", callback=json_object, metavar="JSON", help="Your own fields, a JSON object."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def json_object(_context: click.Context, _option: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """Click callback: the option as a JSON object."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter("must be a JSON object such as '{\"ticket\": 7}'")
    return found


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given on the command line."""
    return {name: value for name, value in options.items() if not (value is None or value is False or value == ())}


@click.command(
    epilog="""\b
Examples:
  memplane write dept.sales.agent_a "Acme renews its contract every March" --source USER
  memplane write dept.sales.agent_a "Prefers tea" --fact-key user:42/drink --subject 42
  memplane write dept.sales.agent_a "Acme pays late" --queued
  git log -1 --format=%B | memplane write dept.engineering - --kind EPISODE --json"""
)
@click.argument("namespace")
@click.argument("content")
@fact_options
@click.option("--subject", "subject_id", help="Whom or what it is about.")
@click.option("--agent", "agent_id", help="The agent that writes.")
@click.option("--layer", "layer_hint", type=LAYERS, help="Where you would keep it; the policy decides.")
@click.option("--pool", type=POOLS, help="SHARED: also for readers below the namespace; needs share.propose.")
@click.option(
    "--ttl", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Not found after this long."
)
@click.option("--request-id", help="Makes retries safe.")
@click.option("--queued", is_flag=True, help="Answer once it is queued; `memplane operation` tells what became of it.")
@click.option("--dry-run", "validate_only", is_flag=True, help="Decide and answer, store nothing.")
@connection_options
@pass_session
def write(session: Session, /, namespace: str, content: str, **options: Any) -> None:
    """Proposes one memory; the policy decides whether and where it is kept.

    CONTENT - reads standard input. Exit code 0 says that the proposal was decided, also where it was refused; or, with
    --queued or while the record store is down, that it is accepted to be decided later.
    """
    text = read_stdin() if content == "-" else content
    if options.pop("queued"):
        options["delivery"] = "QUEUED"
    if options["ttl"] is not None:
        options["ttl"] = timedelta(seconds=options["ttl"])

    async def call() -> pb.WriteMemoryResponse:
        async with session.memory() as client:
            return await client.write(namespace, text, **given(options))

    response = run(call())
    if session.as_json:
        session.out.json(plain(response))
    else:
        show_decision(session.out, response)


def read_stdin() -> str:
    """Standard input as text; a usage error when it is not UTF-8."""
    given = sys.stdin.buffer.read()
    try:
        return given.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"standard input is not UTF-8: byte 0x{given[error.start]:02x} at offset {error.start}"
        raise click.UsageError(message) from None


def show_decision(out: Output, response: pb.WriteMemoryResponse) -> None:
    """The outcome of a write for people."""
    decision = response.decision
    if decision.action == memory_pb2.DECISION_ACTION_QUEUED:
        out.line(f"QUEUED {response.operation.name}", "green")
        show_degraded(out, response.degraded)
        return
    rejected = decision.action == memory_pb2.DECISION_ACTION_REJECTED
    layer = "" if rejected else f" in {enum_name(response.memory, 'layer')}"
    out.line(f"{enum_name(decision, 'action')} {response.memory.id}{layer}".rstrip(), "yellow" if rejected else "green")
    parts = ", ".join(
        f"{part.channel} abstained" if part.abstained else f"{part.channel} {part.score:.2f} × {part.weight:.2f}"
        for part in decision.score_parts
    )
    out.line(
        f"score {decision.score:.2f} against threshold {decision.threshold:.2f}" + (f" ({parts})" if parts else "")
    )
    for reason in decision.reasons:
        out.line(f"{reason.code}: {reason.message}", "dim")
    for conflict in decision.conflicts:
        out.line(f"conflict with {conflict.memory_id} over {conflict.fact_key}: {conflict.rule}", "yellow")
    token = f"token {response.consistency_token}  " if response.consistency_token else ""
    out.line(f"{token}policy {response.policy_version}", "dim")
    show_degraded(out, response.degraded)


def show_degraded(out: Output, degraded: Any) -> None:
    """Names the backends that did not take part in an answer."""
    for each in degraded:
        out.note(f"degraded: {each.backend} ({each.reason}), {each.fallback}", "yellow")
