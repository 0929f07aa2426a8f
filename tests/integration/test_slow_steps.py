"""A record store that is slow at each step: a call of several steps says so before its caller gives up."""

import asyncio
from typing import Any

import grpc
import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import as_user, running_plane, write

STEP_S, CALL_S = 0.35, 0.6
STEPS = ("find_requests", "get", "erase", "commit")


class SlowRecordStore(InMemoryRecordStore):
    """Each step of a change takes STEP_S once `is_slow`."""

    is_slow = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in STEPS or not super().__getattribute__("is_slow"):
            return found

        async def slowly(*arguments: Any) -> Any:
            try:
                async with asyncio.timeout_at(arguments[-1]):
                    await asyncio.sleep(STEP_S)
            except TimeoutError as error:
                raise BackendUnavailable("record_store", "did not answer in time") from error
            return await found(*arguments)

        return slowly


@pytest.mark.parametrize("mode", [pb.FORGET_MODE_SOFT, pb.FORGET_MODE_HARD])
async def test_a_forget_hears_which_store_was_slow(mode: pb.ForgetMode) -> None:
    records = SlowRecordStore(fields_of)
    async with running_plane(records=records) as plane:
        memory = (await write(plane, "The budget is 3 million")).memory
        records.is_slow = True
        request = pb.ForgetMemoryRequest(namespace="dept.sales", id=memory.id, mode=mode, request_id="r-1")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await plane.stub.ForgetMemory(request, metadata=as_user(), timeout=CALL_S)
        records.is_slow = False
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "record_store" in str(failed.value.details())
