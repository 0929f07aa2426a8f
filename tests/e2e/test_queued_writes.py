"""Queued writes of a data plane as a process, on the embedded stores. About 20 seconds."""

from pathlib import Path

from memplane.client import MemPlaneClient, write_request, written
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.e2e.commands import connection, memplane, up
from tests.e2e.control_process import ADMIN_KEY
from tests.e2e.test_data_plane import both

WRITES = 300


async def test_what_was_queued_before_kill_9_is_applied_once_each(tmp_path: Path) -> None:
    requests = [
        write_request("dept.sales", f"Order {number} of {number * 7} chairs", subject_id=f"s{number % 9}")
        for number in range(WRITES)
    ]
    for request in requests:
        request.delivery = pb.DELIVERY_QUEUED
    async with both(tmp_path) as (_, data):
        names = await queue_all(data.address, requests)
        await data.kill()
        await data.start()
        await data.wait_ready()
        assert await queue_all(data.address, requests) == names
        async with MemPlaneClient(data.address, ADMIN_KEY) as client:
            told = [written(await client.wait_operation(name, 30)) for name in names]
            ids = {response.memory.id for response in told if response is not None}
            listed = {memory.id async for memory in client.list("dept.sales", page_size=1_000)}
        assert len(ids) == WRITES
        assert listed == ids
        await data.stop()


async def queue_all(address: str, requests: list[pb.WriteMemoryRequest]) -> list[str]:
    async with MemPlaneClient(address, ADMIN_KEY) as client:
        [response] = [each async for each in client.batch_write(requests)]
    answers = [result.response for result in response.results]
    assert {answer.decision.action for answer in answers} == {memory_pb2.DECISION_ACTION_QUEUED}
    return [answer.operation.name for answer in answers]


async def test_a_queued_write_is_asked_after_on_the_command_line(tmp_path: Path) -> None:
    content = "Remember: Acme renews in March"
    async with up(tmp_path) as (_, announced):
        env = connection(announced)

        async def run(*arguments: str):
            finished = await memplane(*arguments, "--json", cwd=tmp_path, env=env)
            assert finished.code == 0, finished.stderr
            return finished.json

        name = (await run("write", "dept.sales", content, "--queued"))["operation"]["name"]
        told = await run("operation", name, "--wait", "20")
        assert told["done"]
        assert told["response"]["decision"]["action"] == "CREATED"
        found = await run("get", "dept.sales", told["response"]["memory"]["id"])
        assert found["content"] == content
