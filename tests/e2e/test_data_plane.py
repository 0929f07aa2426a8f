"""A data plane as a process: what it does without a policy, with a bad one, and after kill -9."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.longrunning import operations_pb2
from google.protobuf import message_factory
from google.protobuf.duration_pb2 import Duration

from memplane.v1 import maintenance_service_pb2, memory_pb2, memory_service_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from tests.deadline import eventually_async
from tests.e2e.control_process import ADMIN, ControlProcess, control_plane, top_k_yaml
from tests.e2e.data_process import READS, WRITES, DataProcess, stub_of

KEEP = "write_policy:\n  threshold: 0.0\n  short_term_threshold: 0.0\n"
METHODS = [
    method
    for service in (
        memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
        maintenance_service_pb2.DESCRIPTOR.services_by_name["MaintenanceService"],
        operations_pb2.DESCRIPTOR.services_by_name["Operations"],
    )
    for method in service.methods
]
SEARCH = next(method for method in METHODS if method.name == "SearchMemories")


def data_process(tmp_path: Path, control: ControlProcess, *flags: str) -> DataProcess:
    return DataProcess(tmp_path / "data", control.address, control.data_dir / "signing_key.pub", flags)


@asynccontextmanager
async def both(tmp_path: Path, policy: str = KEEP, *flags: str) -> AsyncIterator[tuple[ControlProcess, DataProcess]]:
    (tmp_path / "policies").mkdir(exist_ok=True)
    (tmp_path / "policies" / "a.yaml").write_text(policy)
    async with control_plane(tmp_path) as control:
        data = data_process(tmp_path, control, *flags)
        await data.start()
        try:
            await data.wait_ready()
            yield control, data
        finally:
            await data.kill()


async def outcome(data: DataProcess, method: Any) -> grpc.StatusCode:
    """How a call by the administrator ends, of any service."""
    made = message_factory.GetMessageClass(method.input_type)()
    if hasattr(made, "namespace"):
        made.namespace = "dept.sales"
    async with data.channel() as channel:
        call = channel.unary_unary(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )(made, metadata=ADMIN, timeout=10)
        return await call.code()


BAD_COPIES = {
    "none": None,
    "an empty one": b"",
    "a corrupt one": b"\x00\xffgarbage" * 50,
    "a truncated one": "truncated",
    "one with a flipped bit": "flipped",
}


@pytest.mark.parametrize("copy", BAD_COPIES.values(), ids=BAD_COPIES.keys())
async def test_without_a_control_plane_and_a_good_copy_no_rpc_is_allowed(
    tmp_path: Path, copy: bytes | str | None
) -> None:
    async with both(tmp_path) as (control, data):
        good = data.last_good.read_bytes()
        await data.stop()
        await control.kill()
        if copy is None:
            data.last_good.unlink()
        elif copy == "truncated":
            data.last_good.write_bytes(good[: len(good) // 2])
        elif copy == "flipped":
            data.last_good.write_bytes(bytes([good[0], *good[1:200], good[200] ^ 1, *good[201:]]))
        else:
            assert isinstance(copy, bytes)
            data.last_good.write_bytes(copy)
        await data.start()
        outcomes = {method.name: await outcome(data, method) for method in METHODS}
        assert set(outcomes.values()) == {grpc.StatusCode.UNAVAILABLE}, outcomes
        assert await data.serves("")
        assert not await data.serves(READS)
        assert not await data.serves(WRITES)


async def test_a_copy_signed_by_another_control_plane_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with both(tmp_path / "other") as (_, stranger), both(tmp_path) as (control, data):
        await data.stop()
        await control.kill()
        data.last_good.write_bytes(stranger.last_good.read_bytes())
        await data.start()
        assert await outcome(data, SEARCH) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("has_copy", [False, True])
async def test_a_silent_control_plane_holds_nobody_up(tmp_path: Path, has_copy: bool) -> None:
    async with both(tmp_path) as (control, data):
        await data.stop()
        await control.kill()
        if not has_copy:
            data.last_good.unlink()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            data.control = f"127.0.0.1:{silent.getsockname()[1]}"
            await data.start()
            assert await data.serves("")
            if has_copy:
                await data.wait_ready(within_s=15)
                async with data.channel() as channel:
                    request = pb.SearchMemoriesRequest(namespace="dept.sales", query="anything")
                    await stub_of(channel).SearchMemories(request, metadata=ADMIN)
            else:
                assert not await data.serves(READS)
                assert await outcome(data, SEARCH) is grpc.StatusCode.UNAVAILABLE


async def test_it_answers_on_while_the_control_plane_is_down_and_takes_new_policy_once_it_is_back(
    tmp_path: Path,
) -> None:
    async with both(tmp_path) as (control, data), data.channel() as channel:
        stub = stub_of(channel)
        for number in range(5):
            await stub.WriteMemory(note(f"Valve {number} was replaced"), metadata=ADMIN)
        await control.kill()
        question = pb.SearchMemoriesRequest(namespace="dept.sales", query="valve replaced")
        before = await stub.SearchMemories(question, metadata=ADMIN)
        assert len(before.hits) == 5
        (control.folder / "a.yaml").write_text(KEEP + top_k_yaml(2))
        await control.start()

        async def hits() -> int:
            return len((await stub.SearchMemories(question, metadata=ADMIN)).hits)

        await eventually_async(hits, lambda count: count == 2, within_s=30)


def note(content: str, request_id: str = "") -> pb.WriteMemoryRequest:
    return pb.WriteMemoryRequest(namespace="dept.sales", session_id="s", content=content, request_id=request_id)


async def test_every_acknowledged_write_is_found_once_after_kill_9_three_times(tmp_path: Path) -> None:
    async with both(tmp_path) as (_, data):
        acknowledged: dict[str, str] = {}
        for round_number in range(3):
            await write_until_killed(data, round_number, acknowledged)
            await data.start()
            await data.wait_ready()
        async with data.channel() as channel:
            stub = stub_of(channel)
            stored = await everything(stub)
            assert {memory.id for memory in stored} >= set(acknowledged.values())
            assert len({memory.content for memory in stored}) == len(stored)
            await asyncio.gather(*(is_found_once(stub, *item) for item in acknowledged.items()))
        assert len(acknowledged) > 300


async def write_until_killed(data: DataProcess, round_number: int, acknowledged: dict[str, str]) -> None:
    """1,000 writes from 8 writers, with kill -9 in the middle; notes each acknowledged one."""
    kill_at = 150 + 60 * round_number
    enough = asyncio.Event()
    async with data.channel() as channel:
        stub, count = stub_of(channel), len(acknowledged)

        async def writer(first: int) -> None:
            for number in range(first, 1000, 8):
                content = f"Round {round_number} item {number} lies in box {number * 7}"
                try:
                    written = await stub.WriteMemory(note(content, f"r{round_number}-{number}"), metadata=ADMIN)
                except grpc.aio.AioRpcError:
                    return
                acknowledged[content] = written.memory.id
                if len(acknowledged) >= count + kill_at:
                    enough.set()

        writers = [asyncio.create_task(writer(first)) for first in range(8)]
        await asyncio.wait_for(enough.wait(), 60)
        await data.kill()
        await asyncio.gather(*writers)


async def everything(stub: Any) -> list[memory_pb2.Memory]:
    """All memories of the namespace, page by page."""
    request, found = pb.ListMemoriesRequest(namespace="dept.sales", page_size=500), []
    while True:
        page = await stub.ListMemories(request, metadata=ADMIN)
        found.extend(page.memories)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def is_found_once(stub: Any, content: str, memory_id: str) -> None:
    request = pb.SearchMemoriesRequest(namespace="dept.sales", query=content, top_k=10, record_access=False)
    found = await stub.SearchMemories(request, metadata=ADMIN)
    assert [hit.memory.id for hit in found.hits if hit.memory.content == content] == [memory_id]


async def test_a_retry_after_kill_9_stores_nothing_twice(tmp_path: Path) -> None:
    async with both(tmp_path) as (_, data):
        async with data.channel() as channel:
            first = await stub_of(channel).WriteMemory(note("The seal number is 77", "once"), metadata=ADMIN)
        await data.kill()
        await data.start()
        await data.wait_ready()
        async with data.channel() as channel:
            again = await stub_of(channel).WriteMemory(note("The seal number is 77", "once"), metadata=ADMIN)
            assert again.memory.id == first.memory.id
            assert again.decision == first.decision
            assert len(await everything(stub_of(channel))) == 1


async def test_a_write_is_found_with_its_token_while_the_projector_is_paused(tmp_path: Path) -> None:
    async with both(tmp_path, KEEP, "--projector", "paused") as (_, data), data.channel() as channel:
        written = await stub_of(channel).WriteMemory(note("The blue crane is on line four"), metadata=ADMIN)
        request = pb.SearchMemoriesRequest(
            namespace="dept.sales", query="blue crane", at_least_as_fresh=written.consistency_token
        )
        found = await stub_of(channel).SearchMemories(request, metadata=ADMIN)
        assert [hit.memory.id for hit in found.hits] == [written.memory.id]


async def test_a_second_data_plane_on_the_same_folder_refuses_to_start(tmp_path: Path) -> None:
    async with both(tmp_path) as (control, data):
        second = data_process(tmp_path, control)
        with pytest.raises(AssertionError, match=r"another data plane \(process \d+\) works on"):
            await second.start()
        assert await data.serves(WRITES)


async def test_no_search_sees_two_versions_while_policy_is_reloaded(tmp_path: Path) -> None:
    async with both(tmp_path) as (control, data), data.channel() as channel:
        stub, stop = stub_of(channel), asyncio.Event()
        for number in range(12):
            await stub.WriteMemory(note(f"Shelf {number} is empty"), metadata=ADMIN)
        seen: set[tuple[str, int]] = set()

        async def ask() -> None:
            request = pb.SearchMemoriesRequest(namespace="dept.sales", query="shelf", record_access=False)
            while not stop.is_set():
                answer = await stub.SearchMemories(request, metadata=ADMIN)
                seen.add((answer.policy_version, len(answer.hits)))

        askers = [asyncio.create_task(ask()) for _ in range(4)]
        for top_k in range(1, 9):
            (control.folder / "a.yaml").write_text(KEEP + top_k_yaml(top_k))
            request = await reload(control)
            assert request.propagation.complete
        stop.set()
        await asyncio.gather(*askers)
        assert len({version for version, _ in seen}) == len(seen) >= 8


async def reload(control: ControlProcess) -> Any:
    request = admin_pb2.ReloadPolicySetRequest(wait_for_acks=Duration(seconds=20))
    return await control.call("ReloadPolicySet", request)


@pytest.mark.parametrize("content", [None, b"a host name\n"], ids=["missing", "no key"])
async def test_a_trusted_key_that_is_none_is_named_at_start(tmp_path: Path, content: bytes | None) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
    data = DataProcess(tmp_path / "data", "127.0.0.1:1", key)
    with pytest.raises(AssertionError, match=r"trusted-key: .*signing_key.pub"):
        await data.start()
    assert data.process is not None
    assert data.process.returncode == 2


async def test_a_damaged_record_store_is_named_with_what_to_do(tmp_path: Path) -> None:
    async with both(tmp_path) as (_, data):
        await data.stop()
        store = data.data_dir / "records.sqlite3"
        store.write_bytes(b"no database" * 1000)
        with pytest.raises(AssertionError, match=r"records.sqlite3 cannot be opened: the file is no database .*backup"):
            await data.start()
