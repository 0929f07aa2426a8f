"""Every RPC is called with garbage: no stack trace and no INTERNAL, whatever the bytes."""

import random
import string
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import as_user, running_plane

SERVICE = pb.DESCRIPTOR.services_by_name["MemoryService"]
ROUNDS = 60
TEXTS = ("", " ", "\x00", "dept.sales", "a" * 70, "x/y", "\u202e", "🎉" * 50, "';--", "{}", "mem_1", "v1")
NUMBERS = (0, 1, -1, 7, 99, 2**31 - 1, -(2**31))
FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"), 1e308)


def fill(message: Message, dice: random.Random, depth: int = 0) -> None:
    """Sets some of the fields to values that a broken client might send."""
    for field in message.DESCRIPTOR.fields:
        if dice.random() < 0.5 or depth > 4:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        repeated = field.is_repeated
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            target = getattr(message, field.name).add() if repeated else getattr(message, field.name)
            target.SetInParent()
            fill(target, dice, depth + 1)
            continue
        value = garbage(field, dice)
        if repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def garbage(field: FieldDescriptor, dice: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return dice.choice(TEXTS) or "".join(dice.choices(string.printable, k=20))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return dice.randbytes(16)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return dice.random() < 0.5
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return dice.choice(FLOATS) if field.type == FieldDescriptor.TYPE_DOUBLE else dice.choice(FLOATS[:5])
    return dice.choice(NUMBERS)


@pytest.mark.parametrize("method", [method.name for method in SERVICE.methods])
async def test_garbage_never_ends_in_internal(method: str) -> None:
    dice = random.Random(method)
    descriptor = SERVICE.methods_by_name[method]
    request_type: Any = getattr(pb, descriptor.input_type.name)
    async with running_plane() as plane:
        for _ in range(ROUNDS):
            request = request_type()
            fill(request, dice)
            call = getattr(plane.stub, method)(request, metadata=as_user())
            code, words = await call.code(), await call.details()
            assert code not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN), (request, words)
            assert "Traceback" not in str(words)


@pytest.mark.parametrize("method", [method.name for method in SERVICE.methods])
async def test_bytes_that_are_no_message_do_not_end_in_a_trace(method: str) -> None:
    async with running_plane() as plane, grpc.aio.insecure_channel(plane.address) as channel:
        call = channel.unary_unary(f"/memplane.v1.MemoryService/{method}")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(b"\xff\xff\xff\xff", metadata=as_user())
        assert "Traceback" not in str(failed.value.details())


async def test_an_unknown_method_is_not_offered() -> None:
    async with running_plane() as plane, grpc.aio.insecure_channel(plane.address) as channel:
        call = channel.unary_unary("/memplane.v1.MemoryService/StealEverything")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(b"", metadata=as_user())
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
