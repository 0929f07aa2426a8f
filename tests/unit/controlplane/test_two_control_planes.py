"""Two control planes that share one store, in one process: who wins, who follows, and what their folders do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from controlplane.key_changes import KeyChanges, KeyCommand, KeyOutcome
from controlplane.reload import Command, Reloader
from controlplane.revisions import ApiKeyRecord, Change, KeyEnd, KeyIdTaken, Outrun
from controlplane.snapshots import InForce
from controlplane.sqlite_revisions import SqliteRevisions
from controlplane.standing import Parts
from memplane.errors import Overloaded, PolicyNotLoaded, RequestIdReused, StaleEtag, Unavailable
from memplane.v1 import policy_pb2
from tests.deadline import eventually
from tests.unit.controlplane.parts import BROKEN, make_parts, policy, started


class Plane:
    """One control plane."""

    def __init__(self, parts: Parts, reloader: Reloader) -> None:
        self.parts, self.reloader = parts, reloader
        self.standing = reloader._standing
        self.keys = KeyChanges(parts, self.standing)

    @property
    def generation(self) -> int:
        return self.parts.snapshots.target.generation

    async def reload(self, top_k: int, **fields: object) -> int:
        command = Command(policy(top_k), "ann", **fields)  # type: ignore[arg-type]  # fields by name
        return (await self.reloader.reload(command)).revision.generation

    async def change_key(self, **fields: object) -> KeyOutcome:
        command = KeyCommand(author="ann", respond=told, **fields)  # type: ignore[arg-type]  # fields by name
        return await self.keys.change(command, lambda: None)


def told(in_force: InForce) -> bytes:
    return str(in_force.revision.generation).encode()


def key(key_id: str, expire_time_us: int | None = None) -> ApiKeyRecord:
    return ApiKeyRecord(key_id, key_id * 8, "agent", 1, expire_time_us, "", "ann")


def key_ids(plane: Plane) -> list[str]:
    current = plane.parts.snapshots.current
    assert current is not None
    return [each.key_id for each in policy_pb2.PolicySnapshot.FromString(current.signed.payload).api_keys]


@asynccontextmanager
async def plane_on(data: Path, holder: str = "one") -> AsyncIterator[Plane]:
    async with AsyncExitStack() as stack:
        parts = await make_parts(data, holder=holder)
        stack.push_async_callback(parts.store.close)
        yield Plane(parts, await started(parts))


@pytest.fixture
async def planes(tmp_path: Path) -> AsyncIterator[tuple[Plane, Plane]]:
    async with plane_on(tmp_path, "one") as one, plane_on(tmp_path, "two") as two:
        yield one, two


async def test_the_second_reload_counts_on_from_the_first_control_planes(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    assert await one.reload(1) == 1
    assert await two.reload(2) == 2
    assert await one.reload(3) == 3
    assert [each.generation for each in await two.parts.store.page(100, 10)] == [3, 2, 1]


async def test_many_reloads_at_once_at_both_give_each_generation_once(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    jobs = [plane.reload(top_k) for top_k in range(1, 11) for plane in (one, two)]
    await asyncio.gather(*jobs)
    generations = [each.generation for each in await one.parts.store.page(100, 100)]
    assert generations == list(range(len(generations), 0, -1))
    await one.standing.catch_up()
    await two.standing.catch_up()
    assert one.parts.snapshots.target == two.parts.snapshots.target


async def test_an_etag_of_a_revision_that_the_other_has_replaced_is_stale(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    await one.reload(1)
    await two.standing.catch_up()
    etag = two.standing.etag
    await one.reload(2)
    with pytest.raises(StaleEtag):
        await two.reload(3, etag=etag)
    assert two.generation == 2


async def test_who_is_outrun_at_the_store_is_told_by_its_etag_and_else_starts_again_on_top(
    planes: tuple[Plane, Plane], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = planes
    await one.reload(1)
    await two.standing.catch_up()
    write, rivals = SqliteRevisions.write, iter([10, 11])

    async def outrun(store: SqliteRevisions, change: Change) -> None:
        if store is two.parts.store and (rival := next(rivals, None)) is not None:
            await one.reload(rival)
        await write(store, change)

    monkeypatch.setattr(SqliteRevisions, "write", outrun)
    with pytest.raises(StaleEtag):
        await two.reload(20, etag=two.standing.etag)
    assert await two.reload(21) == 4
    assert [each.generation for each in await two.parts.store.page(100, 10)] == [4, 3, 2, 1]


async def test_who_is_outrun_again_and_again_is_told_to_come_later(
    planes: tuple[Plane, Plane], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outrun(_store: SqliteRevisions, _change: Change) -> None:
        raise Outrun(7)

    monkeypatch.setattr(SqliteRevisions, "write", outrun)
    with pytest.raises(Overloaded):
        await planes[0].reload(1)


async def test_each_follows_the_other_within_a_second(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    following = asyncio.create_task(two.standing.follow())
    try:
        await one.reload(1)
        await eventually(lambda: two.generation, (1).__eq__)
        assert two.parts.fleet.target == one.parts.fleet.target
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def test_following_outlives_a_failing_store(planes: tuple[Plane, Plane], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = planes
    newest, failures = SqliteRevisions.newest, iter([Unavailable("revision store"), ZeroDivisionError()])

    async def failing(store: SqliteRevisions) -> int:
        if store is two.parts.store and (failure := next(failures, None)) is not None:
            raise failure
        return await newest(store)

    await one.reload(1)
    monkeypatch.setattr(SqliteRevisions, "newest", failing)
    monkeypatch.setattr("controlplane.standing.FOLLOW_S", 0.01)
    following = asyncio.create_task(two.standing.follow())
    await eventually(lambda: two.generation, (1).__eq__)
    assert two.standing.fault_count == 1
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


async def test_a_generation_that_this_build_refuses_keeps_the_older_in_force_and_is_not_counted_again(
    planes: tuple[Plane, Plane],
) -> None:
    one, two = planes
    await one.reload(1)
    current = one.parts.snapshots.current
    assert current is not None
    await two.standing.catch_up()
    stricter = type(current.revision)(2, "sha256:x", 1, "newer build", "", "rpc", tuple(BROKEN))
    await one.parts.store.write(Change(stricter))
    await two.standing.catch_up()
    assert two.generation == 1
    assert "revision 2 does not compile" in two.standing.problem
    with pytest.raises(PolicyNotLoaded):
        await two.change_key(new_key=key("00000001"))
    assert await two.reload(1) == 3
    assert two.standing.problem == ""


async def test_a_retry_at_the_other_control_plane_gets_the_first_answer(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    assert await one.reload(1, request_id="r", payload_sha256="p") == 1
    assert await one.reload(2) == 2
    assert await two.reload(1, request_id="r", payload_sha256="p") == 1
    with pytest.raises(RequestIdReused):
        await two.reload(3, request_id="r", payload_sha256="q")
    assert two.generation == 2


async def test_folders_that_get_the_same_edits_do_not_fight(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    for top_k in (1, 2):
        await one.reloader.take_folder(policy(top_k))
    await one.reload(9)
    for top_k in (1, 2):  # the second folder comes late, by way of what is long over
        await two.reloader.take_folder(policy(top_k))
    assert two.generation == 3
    assert two.reloader.folder.refusal == ""
    await two.reloader.take_folder(policy(1))  # an edit back, by hand: that is news
    assert two.generation == 4
    await one.reloader.take_folder(policy(1))
    assert one.generation == 4


async def test_a_folder_does_not_undo_anything_when_its_control_plane_lost_its_data_folder(tmp_path: Path) -> None:
    async with plane_on(tmp_path, "one") as before:
        await before.reloader.take_folder(policy(1))
        await before.reload(2)
    async with plane_on(tmp_path, "another name") as after:
        await after.reloader.take_folder(policy(1))
        assert after.generation == 2


async def test_a_new_key_is_a_generation_with_the_same_documents(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    await one.reload(1)
    outcome = await one.change_key(new_key=key("00000001"), comment="for the night batch")
    assert outcome == KeyOutcome(b"2")
    head = await one.parts.store.head()
    assert head.revision is not None
    assert (head.revision.origin, head.revision.comment) == ("api_key", "for the night batch")
    assert list(head.revision.documents) == policy(1)
    assert key_ids(one) == ["00000001"]
    await two.standing.catch_up()
    assert key_ids(two) == ["00000001"]
    assert two.parts.snapshots.target == one.parts.snapshots.target


async def test_a_rollback_or_reload_never_brings_a_revoked_key_back(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    await one.reload(1)
    await one.change_key(new_key=key("00000001"))
    await two.change_key(ended_key=KeyEnd("00000001", 5))
    assert key_ids(two) == []
    await one.reload(2)
    await one.reload(1)
    assert key_ids(one) == []
    assert (await one.parts.store.api_keys())[0].revoke_time_us == 5


async def test_documents_in_force_with_another_key_are_the_same_set(planes: tuple[Plane, Plane]) -> None:
    one, _ = planes
    await one.reload(1)
    await one.change_key(new_key=key("00000001"))
    assert await one.reload(1) == 2
    assert await one.reload(2) == 3
    assert key_ids(one) == ["00000001"]


async def test_ending_a_key_twice_or_an_unknown_one_is_no_generation(planes: tuple[Plane, Plane]) -> None:
    one, _ = planes
    await one.reload(1)
    await one.change_key(new_key=key("00000001"))
    for _ in range(2):
        assert (await one.change_key(ended_key=KeyEnd("00000001", 5))).answer == b"3"
    assert (await one.change_key(ended_key=KeyEnd("99999999", 5))).answer == b"3"
    assert one.generation == 3


async def test_an_expired_key_is_not_sent(planes: tuple[Plane, Plane]) -> None:
    one, _ = planes
    await one.reload(1)
    await one.change_key(new_key=key("00000001", expire_time_us=one.parts.clock.now_us()))
    assert key_ids(one) == []


async def test_a_repeated_request_makes_one_key(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    await one.reload(1)
    first = await one.change_key(new_key=key("00000001"), request_id="r", payload_sha256="p")
    again = await two.change_key(new_key=key("00000002"), request_id="r", payload_sha256="p")
    assert (first, again) == (KeyOutcome(b"2"), KeyOutcome(b"2", is_repeated=True))
    assert [each.key_id for each in await one.parts.store.api_keys()] == ["00000001"]
    with pytest.raises(RequestIdReused):
        await two.change_key(new_key=key("00000002"), request_id="r", payload_sha256="q")


async def test_a_key_id_that_is_taken_is_told(planes: tuple[Plane, Plane]) -> None:
    one, two = planes
    await one.reload(1)
    await one.change_key(new_key=key("00000001"))
    with pytest.raises(KeyIdTaken):
        await two.change_key(new_key=key("00000001"))
    assert two.generation == 2


async def test_without_a_policy_there_are_no_keys(planes: tuple[Plane, Plane]) -> None:
    with pytest.raises(PolicyNotLoaded):
        await planes[0].change_key(new_key=key("00000001"))
