import asyncio
from collections.abc import AsyncIterator

import pytest

from controlplane import watching
from controlplane.fleet import Fleet, Target
from controlplane.watching import MAX_WATCHED_IDS, FleetWatches
from memplane.errors import InvalidField, PermissionDenied
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2

V1, V2 = Target("sha256:1", 1), Target("sha256:2", 2)
Answer = admin_pb2.WatchDataPlaneStatusesResponse


class FixtureClock:
    def now_us(self) -> int:
        return 10_000_000


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "COALESCE_S", 0.0)


@pytest.fixture
def fleet() -> Fleet:
    made = Fleet(max_nodes=3)
    made.publish(V1)
    return made


def connect(fleet: Fleet, *names: str) -> dict[str, int]:
    return {name: fleet.connect(policy_pb2.NodeInfo(node_id=name), V1, 4_000_000) for name in names}


def watch(
    fleet: Fleet, *only: str, watches: FleetWatches | None = None, renewed: list[str] | None = None
) -> AsyncIterator[Answer]:
    source = watches or FleetWatches(fleet, FixtureClock(), max_age_s=0.0)
    told: list[str] = [] if renewed is None else renewed
    return source.watch(only, authorise=lambda: None, renew=lambda: told.append("renew"))


def ids(answer: Answer) -> list[str]:
    return [each.node.node_id for each in answer.data_planes]


async def next_of(answers: AsyncIterator[Answer]) -> Answer:
    return await asyncio.wait_for(anext(answers), 5.0)


async def test_the_first_answer_has_every_data_plane_and_what_is_in_force(fleet: Fleet) -> None:
    sessions = connect(fleet, "b", "a")
    fleet.disconnect("b", sessions["b"], 7_000_000)
    first = await next_of(watch(fleet))
    assert (ids(first), first.version_info, first.generation) == (["a", "b"], "sha256:1", 1)
    assert [each.policy_age.seconds for each in first.data_planes] == [6, 6]
    assert (first.data_planes[0].HasField("lost_for"), first.data_planes[1].lost_for.seconds) == (False, 3)


async def test_the_first_answer_of_an_empty_fleet_is_empty(fleet: Fleet) -> None:
    assert ids(await next_of(watch(fleet))) == []


async def test_later_answers_have_what_changed_alone(fleet: Fleet) -> None:
    connect(fleet, "a", "b")
    answers = watch(fleet)
    await next_of(answers)
    fleet.nacked("b", V2, "threshold: no")
    second = await next_of(answers)
    assert ids(second) == ["b"]
    fleet.publish(V2)
    third = await next_of(answers)
    assert (ids(third), third.generation, third.data_planes[1].error_detail) == (["a", "b"], 2, "threshold: no")


async def test_changes_of_a_slow_reader_are_put_together(fleet: Fleet) -> None:
    sessions = connect(fleet, "a")
    answers = watch(fleet)
    await next_of(answers)
    for number in range(2, 500):
        fleet.publish(Target(f"sha256:{number}", number))
        fleet.acked("a", fleet.target, number)
    fleet.disconnect("a", sessions["a"], 9_000_000)
    second = await next_of(answers)
    assert [(each.generation, each.connected) for each in second.data_planes] == [(499, False)]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(answers), 0.05)


async def test_a_heartbeat_without_news_is_no_change(fleet: Fleet) -> None:
    connect(fleet, "a")
    answers = watch(fleet)
    await next_of(answers)
    fleet.heard("a", policy_pb2.NodeReport(call_count=9), 9_000_000)
    waiting = asyncio.ensure_future(next_of(answers))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    fleet.heard("a", policy_pb2.NodeReport(call_count=10, stale_action="serve"), 9_500_000)
    assert (await waiting).data_planes[0].report.call_count == 10


async def test_a_data_plane_that_made_room_for_another_is_named(fleet: Fleet) -> None:
    sessions = connect(fleet, "a", "b", "c")
    answers = watch(fleet)
    await next_of(answers)
    fleet.disconnect("a", sessions["a"], 5_000_000)
    connect(fleet, "d")
    second = await next_of(answers)
    assert (list(second.removed_node_ids), ids(second)) == (["a"], ["d"])


async def test_only_the_data_planes_asked_for_are_told(fleet: Fleet) -> None:
    connect(fleet, "a", "b")
    answers = watch(fleet, "b", "c")
    assert ids(await next_of(answers)) == ["b"]
    fleet.nacked("a", V2, "no")
    connect(fleet, "c")
    assert ids(await next_of(answers)) == ["c"]


async def test_too_many_ids_are_refused(fleet: Fleet) -> None:
    with pytest.raises(InvalidField):
        await next_of(watch(fleet, *(str(number) for number in range(MAX_WATCHED_IDS + 1))))


async def test_a_watch_ends_with_its_readers_permission(fleet: Fleet) -> None:
    allowed = [True]

    def authorise() -> None:
        if not allowed.pop():
            raise PermissionDenied("policy.read")

    answers = FleetWatches(fleet, FixtureClock(), 0.0).watch((), authorise, lambda: None)
    await next_of(answers)
    allowed.append(False)
    fleet.publish(V2)
    with pytest.raises(PermissionDenied):
        await next_of(answers)


async def test_a_watch_ends_in_good_order_when_the_control_plane_stops(fleet: Fleet) -> None:
    watches, renewed = FleetWatches(fleet, FixtureClock(), 0.0), list[str]()
    answers = watch(fleet, watches=watches, renewed=renewed)
    await next_of(answers)
    watches.close()
    assert [answer async for answer in answers] == []
    assert renewed == []


async def test_an_old_watch_ends_to_be_opened_again(fleet: Fleet) -> None:
    renewed: list[str] = []
    answers = watch(fleet, watches=FleetWatches(fleet, FixtureClock(), max_age_s=0.05), renewed=renewed)
    async with asyncio.timeout(5.0):
        assert len([answer async for answer in answers]) == 1
    assert renewed == ["renew"]
