"""`memplane queue` against a small server of the contract."""

import json

from memplane.v1 import maintenance_service_pb2 as pb
from tests.unit.memplane.cli.test_maintenance import MaintenanceRecorder, call

WRITE = pb.SetAsideWrite(id="7", operation="operations/1", namespace="dept.sales", principal_id="agent")


async def test_set_aside_writes_are_listed_through_every_page():
    def page(request):
        return pb.ListSetAsideWritesResponse(writes=[WRITE], next_page_token="" if request.page_token else "next")

    recorder = MaintenanceRecorder(ListSetAsideWrites=page)
    shown = json.loads((await call(recorder, "set-aside", "--first", "0", "--json", group="queue")).stdout)
    assert [each["operation"] for each in shown] == ["operations/1"] * 2
    assert (await call(recorder, "set-aside", "--first", "1", group="queue")).output.count("dept.sales") == 1
    none = MaintenanceRecorder(ListSetAsideWrites=lambda _: pb.ListSetAsideWritesResponse())
    assert "nothing was set aside" in (await call(none, "set-aside", group="queue")).output


async def test_replay_names_the_ids_or_none():
    recorder = MaintenanceRecorder(ReplaySetAsideWrites=lambda _: pb.ReplaySetAsideWritesResponse(replayed_count=2))
    assert "2 in the queue again" in (await call(recorder, "replay", "7", "9", group="queue")).output
    shown = json.loads((await call(recorder, "replay", "--json", group="queue")).stdout)
    assert shown == {"replayed_count": 2}
    assert [list(request.ids) for request in recorder.requests] == [["7", "9"], []]
