"""Every RPC is called with garbage: no stack trace and no INTERNAL, whatever the bytes."""

import asyncio
import random
from pathlib import Path
from typing import Any

import grpc
import pytest

from memplane.v1 import memory_service_pb2 as pb
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from tests.garbage import fill
from tests.integration.harness import as_user, running_plane
from tests.unit.controlplane.serving import ADMIN, NODE, serving

SERVICE = pb.DESCRIPTOR.services_by_name["MemoryService"]
ADMIN_SERVICE = admin_pb2.DESCRIPTOR.services_by_name["PolicyAdminService"]
ROUNDS = 60


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


def harmless(code: grpc.StatusCode, words: str | None) -> bool:
    return code not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN) and "Traceback" not in str(words)


@pytest.mark.parametrize("method", [method.name for method in ADMIN_SERVICE.methods])
async def test_garbage_never_ends_in_internal_at_the_control_plane(tmp_path: Path, method: str) -> None:
    dice = random.Random(method)
    descriptor = ADMIN_SERVICE.methods_by_name[method]
    request_type: Any = getattr(admin_pb2, descriptor.input_type.name)
    async with serving(tmp_path) as plane:
        for _ in range(ROUNDS // 3):
            request = request_type()
            fill(request, dice)
            if "wait_for_acks" in request.DESCRIPTOR.fields_by_name:
                request.ClearField("wait_for_acks")  # a legal wait of a minute is no garbage
            timeout_s = 0.2 if descriptor.server_streaming else None  # a legal watch has no end
            call = getattr(plane.admin, method)(request, metadata=ADMIN, timeout=timeout_s)
            assert harmless(await call.code(), await call.details()), request


async def test_garbage_never_ends_in_internal_on_the_policy_stream(tmp_path: Path) -> None:
    dice = random.Random("stream")
    async with serving(tmp_path) as plane:
        for _ in range(ROUNDS // 3):
            first, second = discovery_pb2.StreamPoliciesRequest(), discovery_pb2.StreamPoliciesRequest()
            fill(first, dice)
            fill(second, dice)
            good = discovery_pb2.StreamPoliciesRequest(node=policy_pb2.NodeInfo(node_id="node-1"))
            for requests in ([first], [good, second]):
                call = plane.discovery.StreamPolicies(metadata=NODE, timeout=0.2)
                assert harmless(*await talk(call, requests)), requests
            fetch = discovery_pb2.FetchPoliciesRequest()
            fill(fetch, dice)
            once = plane.discovery.FetchPolicies(fetch, metadata=NODE)
            assert harmless(await once.code(), await once.details()), fetch


async def talk(call: Any, requests: list[Any]) -> tuple[grpc.StatusCode, str | None]:
    """How a stream ends that sends these requests, each answered before the next, and then only listens.

    (A write that meets a stream which just ended makes the client itself say INTERNAL.)
    """
    try:
        for request in requests:
            await call.write(request)
            await call.read()
        while await call.read() is not grpc.aio.EOF:
            pass
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        pass  # it ended on the way; its code tells how
    return await call.code(), await call.details()
