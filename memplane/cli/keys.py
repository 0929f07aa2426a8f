"""`memplane keys`: makes, lists and revokes API keys."""

from datetime import datetime
from typing import Any

import click

from memplane.cli.output import plain, short_time
from memplane.cli.session import INSTANT, Session, connection_options, pass_session, run
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2

COLUMNS = ("id", "principal", "made", "by", "ends", "revoked", "what for")


@click.group()
def keys() -> None:
    """Makes, lists and revokes API keys."""


@keys.command(
    epilog="""\b
Examples:
  memplane keys create sales-agent
  memplane keys create sales-agent --expires 2027-01-31 --description "CI of the sales team" > sales.key"""
)
@click.argument("principal")
@click.option("--expires", "expire_time", type=INSTANT, help="When it ends; without this it does not.")
@click.option("--description", default="", help="What it is for. Up to 256 bytes.")
@connection_options
@pass_session
def create(session: Session, /, principal: str, expire_time: datetime | None, description: str) -> None:
    """Makes an API key for a principal of the policy, and prints it: this once, alone on stdout."""
    fields: dict[str, Any] = {"expire_time": expire_time} if expire_time is not None else {}

    async def call() -> pb.CreateApiKeyResponse:
        async with session.admin() as client:
            return await client.create_key(principal, description=description, **fields)

    answer = run(call())
    made = answer.api_key
    if not answer.secret:
        raise click.ClickException(
            f"key {made.key_id} was made, but the answer with it was lost on the way: revoke it, and make another"
        )
    if session.as_json:
        session.out.json(plain(answer))
        return
    click.echo(answer.secret)
    ends = f"until {short_time(made.expire_time)}" if made.HasField("expire_time") else "without an end"
    session.out.note(f"key {made.key_id} of {made.principal}, {ends}; it is not shown again")


@keys.command(
    "list",
    epilog="""\b
Examples:
  memplane keys list
  memplane keys list sales-agent --ended --json""",
)
@click.argument("principal", default="")
@click.option("--ended", is_flag=True, help="Also revoked and expired ones.")
@connection_options
@pass_session
def list_keys(session: Session, /, principal: str, ended: bool) -> None:
    """Lists API keys without their secrets, newest first. Keys that stand in the policy itself are not among them."""

    async def call() -> list[policy_pb2.ApiKey]:
        async with session.admin() as client:
            return [key async for key in client.keys(principal, include_ended=ended)]

    found = run(call())
    if session.as_json:
        session.out.json([plain(key) for key in found])
        return
    rows = [
        (
            each.key_id,
            each.principal,
            short_time(each.create_time),
            each.author,
            short_time(each.expire_time),
            short_time(each.revoke_time),
            each.description,
        )
        for each in found
    ]
    session.out.table(COLUMNS, rows)


@keys.command(
    epilog="""\b
Examples:
  memplane keys revoke 1a2b3c4d --comment "laptop lost" """
)
@click.argument("key_id")
@click.option("--wait", "wait_s", type=click.FloatRange(0, 60), default=10, show_default=True, help="Seconds for ACKs.")
@click.option("--comment", default="", help="Why, for the history.")
@connection_options
@pass_session
def revoke(session: Session, /, key_id: str, wait_s: float, comment: str) -> None:
    """Makes an API key worthless. Exit code 1 when a data plane does not know it yet."""

    async def call() -> pb.RevokeApiKeyResponse:
        async with session.admin() as client:
            return await client.revoke_key(key_id, comment, wait_s)

    answer = run(call())
    spread = answer.propagation
    if session.as_json:
        session.out.json(plain(answer))
    else:
        session.out.line(
            f"key {answer.api_key.key_id} of {answer.api_key.principal} was revoked "
            f"{short_time(answer.api_key.revoke_time)}, generation {answer.revision.generation}"
        )
        session.out.line(
            f"data planes: {spread.connected} connected, {spread.acked} acknowledged, {spread.nacked} refused, "
            f"{spread.pending} pending, {spread.lost} lost"
        )
    if spread.nacked or spread.lost or (wait_s and spread.pending):
        raise click.exceptions.Exit(1)
