"""`memplane indexes` against a small server of the contract."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from click.testing import CliRunner, Result
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.rpc import status_pb2

from memplane.cli.main import cli
from memplane.client.maintenance import MaintenanceClient
from memplane.v1 import maintenance_service_pb2 as pb
from memplane.v1 import maintenance_service_pb2_grpc as rpc
from tests.unit.memplane.client.fakes import Recorder

NAME = "vector_index:m"
CHECK = pb.IndexCheck(index=pb.INDEX_KIND_VECTOR, name=NAME, active=True, record_count=3, index_count=3)
LETTER = pb.DeadLetter(index_name=NAME, position=7, memory_id="mem_1", namespace="a", attempts=5, reason="too odd")


class MaintenanceRecorder(Recorder, rpc.MaintenanceServiceServicer):
    """A data plane's contract."""


class OperationsRecorder(Recorder, operations_pb2_grpc.OperationsServicer):
    """How long work stands."""


def operation(*, done: bool = False, error: str = "") -> operations_pb2.Operation:
    made = operations_pb2.Operation(name="operations/reindex-1", done=done)
    made.metadata.Pack(pb.ReindexProgress(index=pb.INDEX_KIND_VECTOR, name=NAME, total_count=3, enqueued_count=2))
    if error:
        made.error.CopyFrom(status_pb2.Status(code=13, message=error))
    elif done:
        made.response.Pack(pb.ReindexResult(index=pb.INDEX_KIND_VECTOR, index_count=3, activated=True))
    return made


@asynccontextmanager
async def serving(recorder: MaintenanceRecorder, operations: OperationsRecorder) -> AsyncIterator[str]:
    server = grpc.aio.server()
    rpc.add_MaintenanceServiceServicer_to_server(recorder, server)
    operations_pb2_grpc.add_OperationsServicer_to_server(operations, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def call(
    recorder: MaintenanceRecorder,
    *arguments: str,
    state: operations_pb2.Operation | None = None,
    group: str = "indexes",
) -> Result:
    async with serving(recorder, OperationsRecorder(GetOperation=lambda _: state)) as address:
        given = (group, *arguments, "--target", address)
        return await asyncio.to_thread(CliRunner().invoke, cli, given)


def checking(**fields: bool | int) -> MaintenanceRecorder:
    check = pb.IndexCheck()
    check.CopyFrom(CHECK)
    check.MergeFrom(pb.IndexCheck(**fields))  # type: ignore[arg-type]
    return MaintenanceRecorder(CheckIndexes=lambda _: pb.CheckIndexesResponse(checks=[check]))


async def test_check_shows_each_index_and_says_by_its_code_whether_all_is_well():
    recorder = checking(consistent=True)
    result = await call(recorder, "check", "--index", "vector", "--sample", "50", "--full")
    assert (result.exit_code, NAME in result.output) == (0, True), result.output
    (request,) = recorder.requests
    assert (request.index, request.sample_size, request.full) == (pb.INDEX_KIND_VECTOR, 50, True)
    assert (await call(checking(missing_count=1), "check")).exit_code == 1


async def test_check_prints_json():
    result = await call(checking(consistent=True), "check", "--json")
    (check,) = json.loads(result.stdout)
    assert (check["index"], check["record_count"], check["consistent"]) == ("VECTOR", 3, True)


async def test_rebuild_begins_and_leaves_it_running():
    recorder = MaintenanceRecorder(Reindex=lambda _: operation())
    result = await call(recorder, "rebuild", "VECTOR", "--model", "m2", "--keep-active", "--repair-only")
    assert (result.exit_code, "2 of 3 in line" in result.output) == (0, True), result.output
    (request,) = recorder.requests
    assert (request.index, request.embedding_model) == (pb.INDEX_KIND_VECTOR, "m2")
    assert (request.keep_active, request.repair_only, bool(request.request_id)) == (True, True, True)


async def test_rebuild_can_be_waited_for():
    recorder = MaintenanceRecorder(Reindex=lambda _: operation(done=True))
    result = await call(recorder, "rebuild", "TEXT", "--wait")
    assert "3 memories" in result.output
    assert "searches use it now" in result.output
    shown = json.loads((await call(recorder, "rebuild", "TEXT", "--wait", "--json")).stdout)
    assert (shown["done"], shown["response"]["activated"], shown["metadata"]["index"]) == (True, True, "VECTOR")


async def test_a_rebuild_that_failed_ends_with_1():
    recorder = MaintenanceRecorder(Reindex=lambda _: operation(done=True, error="internal error"))
    result = await call(recorder, "rebuild", "TEXT", "--wait")
    assert (result.exit_code, "internal error" in result.output) == (1, True)
    shown = json.loads((await call(recorder, "rebuild", "TEXT", "--json")).stdout)
    assert shown["error"]["message"] == "internal error"


async def test_following_asks_until_it_is_done():
    states = iter([operation(), operation(done=True)])
    operations = OperationsRecorder(GetOperation=lambda _: next(states))
    async with serving(MaintenanceRecorder(), operations) as target, MaintenanceClient(target) as client:
        seen = [state.done async for state in client.follow(operation(), pause_s=0.0)]
    assert seen == [False, False, True]


async def test_dead_letters_are_listed_through_every_page():
    def page(request):
        return pb.ListDeadLettersResponse(dead_letters=[LETTER], next_page_token="" if request.page_token else "next")

    recorder = MaintenanceRecorder(ListDeadLetters=page)
    assert len(json.loads((await call(recorder, "dead-letters", "--first", "0", "--json")).stdout)) == 2
    assert (await call(recorder, "dead-letters", "--first", "1")).output.count("too odd") == 1
    none = MaintenanceRecorder(ListDeadLetters=lambda _: pb.ListDeadLettersResponse())
    assert "nothing was given up" in (await call(none, "dead-letters")).output


async def test_replay_names_the_index_and_positions():
    recorder = MaintenanceRecorder(ReplayDeadLetters=lambda _: pb.ReplayDeadLettersResponse(replayed_count=2))
    result = await call(recorder, "replay", NAME, "7", "9")
    assert "2 due again" in result.output
    (request,) = recorder.requests
    assert (request.index_name, list(request.positions)) == (NAME, [7, 9])
    assert json.loads((await call(recorder, "replay", NAME, "--json")).stdout) == {"replayed_count": 2}
