"""Sensitive data over gRPC on the embedded stores: masked, refused or held back, and nowhere in the folder."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.codec import struct_of
from memplane.process import SystemClock
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually_async
from tests.integration.harness import KEEP_ALL, Plane, as_user, contents, running_plane, search, write

PHONE, CARD, MAIL, SECRET = "13812345678", "6222028735805588376", "a.bright@example.org", "Qwe9186!!"
VALUES = (PHONE, CARD, MAIL, SECRET)
SPOKEN = f"记住：电话{PHONE}，卡{CARD}，邮箱{MAIL}，密码是{SECRET}。"
KEPT = "记住：电话138****5678，卡***************8376，邮箱a***@example.org，密码是[PASSWORD]。"
OVERRIDES: Mapping[str, Any] = {
    "namespace_policy": {
        "overrides": {
            "strict": {"sensitive_policy": {"actions": {"PASSWORD": "reject"}}},
            "careful": {"sensitive_policy": {"actions": {"PHONE_CN": "review"}}},
            "open": {"sensitive_policy": {"enabled": False}},
        }
    }
}


@asynccontextmanager
async def plane_in(folder: Path) -> AsyncIterator[Plane]:
    queue = await SqliteWriteQueue.open(folder / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    async with running_plane(folder, {**KEEP_ALL, **OVERRIDES}, queue=queue) as plane:
        yield plane
    await queue.close()


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    """In memory: for what needs no folder."""
    async with running_plane(policy={**KEEP_ALL, **OVERRIDES}) as running:
        yield running


def struct(**values: object) -> Struct:
    return struct_of(values)


def holds(folder: Path, value: str) -> list[str]:
    """The files below a folder in which the value stands."""
    needle = value.encode()
    return [str(path) for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


async def queue_is_empty(plane: Plane) -> None:
    queue = plane.stores.queue
    assert queue is not None
    deadline_s = asyncio.get_running_loop().time() + 30
    await eventually_async(lambda: queue.depth(deadline_s), lambda depth: depth.waiting == 0)


async def test_values_are_in_no_file_whatever_way_they_came(tmp_path: Path) -> None:
    long = SPOKEN + "".join(f"第{number}段说的是仓库里的{number}号叉车和它的钥匙。" for number in range(200))
    async with plane_in(tmp_path) as plane:
        told = await write(
            plane,
            SPOKEN,
            request_id="r1",
            tags=[PHONE],
            metadata=struct(phone=int(PHONE), note=[MAIL]),
            structured=struct(password=SECRET),
            speaker=MAIL,
            embedding=[1.0] * plane.embedder.dimension,
        )
        assert told.memory.content == KEPT
        found = {(item.type, item.field) for item in told.decision.redactions}
        assert {
            ("PHONE_CN", "content"),
            ("PHONE_CN", "tags"),
            ("PASSWORD", "structured"),
            ("EMAIL", "speaker"),
        } <= found
        condensed = await write(plane, long)
        assert condensed.memory.provenance.condensed
        assert condensed.memory.provenance.original_content.startswith(KEPT)
        batch = pb.BatchWriteMemoriesRequest(
            requests=[
                pb.WriteMemoryRequest(namespace="dept.sales", content=f"批量{number} {SPOKEN}", session_id="s")
                for number in range(3)
            ]
        )
        await plane.stub.BatchWriteMemories(batch, metadata=as_user())
        await plane.stub.UpdateMemory(
            pb.UpdateMemoryRequest(
                memory=memory_pb2.Memory(
                    id=told.memory.id, namespace="dept.sales", content=f"改了 {SPOKEN}", metadata=struct(mail=MAIL)
                ),
                update_mask=FieldMask(paths=["content", "metadata"]),
                reason=f"asked by {PHONE}",
                request_id="u1",
            ),
            metadata=as_user(),
        )
        await write(plane, f"排队 {SPOKEN}", delivery=pb.DELIVERY_QUEUED, tags=[MAIL], request_id="q1")
        await queue_is_empty(plane)
        forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=told.memory.id, reason=f"for {MAIL}")
        await plane.stub.ForgetMemory(forget, metadata=as_user())
    assert {value: holds(tmp_path, value) for value in VALUES} == {value: [] for value in VALUES}
    assert holds(tmp_path, "138****5678")


async def test_a_queued_write_lies_masked_in_the_queue_and_a_retry_is_known(tmp_path: Path) -> None:
    queue = await SqliteWriteQueue.open(tmp_path / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    async with running_plane(tmp_path / "plane", KEEP_ALL, queue=queue) as plane:
        first = await write(plane, SPOKEN, delivery=pb.DELIVERY_QUEUED, request_id="q1")
        again = await write(plane, SPOKEN, delivery=pb.DELIVERY_QUEUED, request_id="q1")
        assert first.decision.action == memory_pb2.DECISION_ACTION_QUEUED
        assert again.operation.name in {first.operation.name, ""}  # "": decided already
        await queue_is_empty(plane)
        replayed = await write(plane, SPOKEN, request_id="q1")
        assert replayed.memory.content == KEPT
        assert {item.type for item in replayed.decision.redactions} == {"PHONE_CN", "BANK_CARD", "EMAIL", "PASSWORD"}
        with pytest.raises(grpc.aio.AioRpcError, match="another payload"):
            await write(plane, KEPT, request_id="q1")
    await queue.close()
    assert not [value for value in VALUES if holds(tmp_path, value)]


async def test_a_retry_gets_the_first_answer(plane: Plane) -> None:
    first = await write(plane, SPOKEN, request_id="r1")
    again = await write(plane, SPOKEN, request_id="r1")
    assert again.memory.id == first.memory.id
    assert again.decision.redactions == first.decision.redactions


async def test_what_was_masked_is_found_by_value_or_form_and_not_masked_again(plane: Plane) -> None:
    await write(plane, SPOKEN)
    await write(plane, "记住：电话13987654321")
    for number in (PHONE, "138****5678"):
        assert contents(await search(plane, f"谁的号码是{number}？"))[0] == KEPT
    repeated = await write(plane, KEPT)
    assert repeated.decision.action == memory_pb2.DECISION_ACTION_MERGED
    assert not repeated.decision.redactions


@pytest.mark.parametrize("delivery", [pb.DELIVERY_SYNC, pb.DELIVERY_QUEUED])
async def test_a_policy_that_rejects_a_type_refuses_the_write(
    tmp_path: Path, delivery: "pb.Delivery.ValueType"
) -> None:
    async with plane_in(tmp_path) as plane:
        await write(plane, SPOKEN, "strict", delivery=delivery, request_id="r1")
        if delivery == pb.DELIVERY_QUEUED:
            await queue_is_empty(plane)
        told = await write(plane, SPOKEN, "strict", request_id="r1")
        assert told.decision.action == memory_pb2.DECISION_ACTION_REJECTED
        assert [reason.message for reason in told.decision.reasons if reason.code == "SENSITIVE_DATA"] == [
            "content holds PASSWORD; the policy refuses it (sensitive_policy)"
        ]
        listed = await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace="strict"), metadata=as_user())
        assert not listed.memories
    assert not [value for value in VALUES if holds(tmp_path, value)]


async def test_a_policy_that_reviews_a_type_holds_the_memory_back(plane: Plane) -> None:
    told = await write(plane, SPOKEN, "careful")
    assert told.memory.state == memory_pb2.STATE_PENDING_REVIEW
    assert told.memory.content == KEPT
    assert "SENSITIVE_DATA" in [reason.code for reason in told.decision.reasons]
    assert contents(await search(plane, "电话", "careful")) == []


async def test_an_update_is_refused_or_held_back_as_a_write_is(plane: Plane) -> None:
    async def updated(namespace: str) -> pb.UpdateMemoryResponse:
        memory = (await write(plane, "The lift is in hall seven", namespace)).memory
        changed = memory_pb2.Memory(id=memory.id, namespace=namespace, content=SPOKEN)
        request = pb.UpdateMemoryRequest(memory=changed, update_mask=FieldMask(paths=["content"]))
        return await plane.stub.UpdateMemory(request, metadata=as_user())

    with pytest.raises(grpc.aio.AioRpcError, match=r"memory\.content: holds PASSWORD") as refused:
        await updated("strict")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (await updated("careful")).memory.state == memory_pb2.STATE_PENDING_REVIEW


async def test_a_namespace_may_be_left_as_it_is(plane: Plane) -> None:
    told = await write(plane, SPOKEN, "open.lab")
    assert told.memory.content == SPOKEN
    assert not told.decision.redactions
