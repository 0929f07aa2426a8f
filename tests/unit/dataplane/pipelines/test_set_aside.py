"""Set-aside writes: listed and replayed by those who may, applied once what made them fail is gone."""

from typing import cast

import pytest
from google.rpc import code_pb2

from dataplane.changes import SetAsideWrite
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.set_aside import SetAsideWrites
from dataplane.ports import WriteQueue
from memplane.errors import NotOffered, PermissionDenied, Unavailable
from tests.deadline import eventually_async
from tests.unit.dataplane.pipelines.queue_rig import Rig, in_time, memory_rig, response_of, running


class Poisoned:
    """A write pipeline that fails by a defect until it is mended."""

    def __init__(self, rig: Rig) -> None:
        self._write = rig.write
        self.is_mended = False

    async def write_batch(self, *arguments: object) -> object:
        if not self.is_mended:
            raise RuntimeError("a defect")
        return await self._write.write_batch(*arguments)  # type: ignore[arg-type]


async def test_a_replayed_write_is_applied_and_its_operation_tells_so() -> None:
    rig = memory_rig()
    poisoned, aside, keeper = Poisoned(rig), SetAsideWrites(rig.queue), rig.caller("keeper")
    settled = await rig.put("Acme pays late")
    async with running(rig.consumer(write=poisoned, first_pause_s=0.001)):
        assert (await rig.ended(settled)).error.code == code_pb2.INTERNAL
        [found] = await eventually_async(lambda: aside.page("", 10, keeper, in_time()), bool)
        assert found.write is not None
        assert found.write.operation == settled.response.operation.name
        poisoned.is_mended = True
        assert await aside.replay([found.entry_id], keeper, in_time()) == 1
        name = settled.response.operation.name
        ended = await eventually_async(lambda: rig.operation(name), lambda operation: operation.HasField("response"))
    assert response_of(ended).memory.id
    assert await rig.contents() == ["Acme pays late"]
    assert await aside.page("", 10, keeper, in_time()) == []


async def test_set_aside_writes_need_maintenance_on_every_namespace() -> None:
    rig = memory_rig()
    aside, caller = SetAsideWrites(rig.queue), rig.caller("agent")
    with pytest.raises(PermissionDenied):
        await aside.page("", 10, caller, in_time())
    with pytest.raises(PermissionDenied):
        await aside.replay([], caller, in_time())


async def test_without_a_queue_they_are_not_offered() -> None:
    aside, caller = SetAsideWrites(None), memory_rig().caller("keeper")
    with pytest.raises(NotOffered):
        await aside.page("", 10, caller, in_time())
    with pytest.raises(NotOffered):
        await aside.replay([], caller, in_time())


class DownQueue:
    """Does not answer."""

    async def set_aside_writes(self, *_arguments: object) -> list[SetAsideWrite]:
        raise BackendUnavailable("queue")

    async def replay_set_aside(self, *_arguments: object) -> int:
        raise BackendUnavailable("queue")


async def test_a_queue_that_is_down_is_named() -> None:
    rig = memory_rig()
    aside = SetAsideWrites(cast("WriteQueue", DownQueue()))
    with pytest.raises(Unavailable, match="queue"):
        await aside.page("", 10, rig.caller("keeper"), in_time())
    with pytest.raises(Unavailable, match="queue"):
        await aside.replay([], rig.caller("keeper"), in_time())
