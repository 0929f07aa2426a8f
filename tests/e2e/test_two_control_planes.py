"""Two control planes, real processes with keys of their own, share one revision store."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from dataplane.adapters.policy_stream import PolicyStreamOptions
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually, eventually_async
from tests.e2e.control_process import (
    ControlProcess,
    control_plane,
    data_plane,
    generation_of,
    node_options,
    top_k_yaml,
)

pytestmark = pytest.mark.slow
FOLLOWED_S = 60.0
"""On a busy machine: the first set that a control plane compiles waits for its compiling process to start."""


@pytest.fixture(params=["sqlite", "postgres"])
def store_flags(request: pytest.FixtureRequest, tmp_path: Path) -> Sequence[str]:
    if request.param == "postgres":
        return ("--revisions-dsn", request.getfixturevalue("postgres_database"))
    return ("--revisions-file", str(tmp_path / "shared.sqlite3"))


def shared_file(tmp_path: Path) -> Sequence[str]:
    return ("--revisions-file", str(tmp_path / "shared.sqlite3"))


@asynccontextmanager
async def pair(tmp_path: Path, flags: Sequence[str]) -> AsyncIterator[tuple[ControlProcess, ControlProcess]]:
    """Two that serve, each with folders of its own."""
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(control_plane(made_folder(tmp_path / name), flags=flags))
            for name in ("one", "two")
        ]
        yield one, two


def made_folder(path: Path) -> Path:
    path.mkdir()
    return path


def top_k_reload(top_k: int, etag: str = "") -> admin_pb2.ReloadPolicySetRequest:
    document = policy_pb2.PolicyDocument(name="a.yaml", content=top_k_yaml(top_k).encode())
    return admin_pb2.ReloadPolicySetRequest(inline=admin_pb2.InlineDocuments(documents=[document]), etag=etag)


async def reloaded(control: ControlProcess, top_k: int, etag: str = "") -> int:
    return int((await control.call("ReloadPolicySet", top_k_reload(top_k, etag))).revision.generation)


def trusting(options: PolicyStreamOptions, *controls: ControlProcess) -> PolicyStreamOptions:
    """The same, with the public keys of several control planes."""
    keys = b"".join((control.data_dir / "signing_key.pub").read_bytes() for control in controls)
    file = options.last_good_file.with_suffix(".pub")
    file.write_bytes(keys)
    return replace(options, trusted_key_file=file)


async def generations(control: ControlProcess) -> list[int]:
    request = admin_pb2.ListPolicySetRevisionsRequest(page_size=1000)
    return [each.generation for each in (await control.call("ListPolicySetRevisions", request)).revisions]


async def test_both_take_reloads_follow_each_other_and_push_to_their_own_data_planes(
    tmp_path: Path, store_flags: Sequence[str]
) -> None:
    async with pair(tmp_path, store_flags) as (one, two), AsyncExitStack() as stack:
        assert await reloaded(one, 1) == 1
        at_one = await stack.enter_async_context(data_plane(node_options(one, tmp_path, "at-one")))
        at_two = await stack.enter_async_context(data_plane(node_options(two, tmp_path, "at-two")))
        await eventually(lambda: (generation_of(at_one), generation_of(at_two)), (1, 1).__eq__, within_s=FOLLOWED_S)

        taken = await asyncio.gather(*(reloaded(plane, 2 + n) for n in range(5) for plane in (one, two)))
        newest = max(taken)
        assert await generations(one) == list(range(newest, 0, -1))
        await eventually(
            lambda: (generation_of(at_one), generation_of(at_two)), (newest, newest).__eq__, within_s=FOLLOWED_S
        )
        assert await one.in_force() == await two.in_force()

        etag = (await one.call("GetPolicySetRevision")).revision.etag
        outcomes = await asyncio.gather(reloaded(one, 18, etag), reloaded(two, 19, etag), return_exceptions=True)
        assert [newest + 1] == [each for each in outcomes if isinstance(each, int)]
        (refused,) = [each for each in outcomes if isinstance(each, grpc.aio.AioRpcError)]
        assert refused.code() is grpc.StatusCode.ABORTED


async def test_a_data_plane_that_moves_to_the_other_takes_its_policy_and_no_older_one(tmp_path: Path) -> None:
    async with pair(tmp_path, shared_file(tmp_path)) as (one, two):
        for top_k in (1, 2, 3):
            await reloaded(one, top_k)
        options = trusting(node_options(one, tmp_path), one, two)
        async with data_plane(options) as holder:
            await eventually(lambda: generation_of(holder), (3).__eq__, within_s=FOLLOWED_S)
        await eventually_async(two.in_force, lambda found: found[1] == 3, within_s=FOLLOWED_S)
        assert await reloaded(two, 4) == 4
        async with data_plane(replace(options, control_address=two.address)) as holder:
            await eventually(lambda: generation_of(holder), (4).__eq__, within_s=FOLLOWED_S)
        await one.kill()
        one.flags = ()  # starts with revisions of its own, as one that was restored from an old copy
        await one.start()
        assert await reloaded(one, 9) == 1
        async with data_plane(replace(options, control_address=one.address)) as holder:
            await eventually(lambda: holder.problem, bool, within_s=FOLLOWED_S)
            assert "generation 1 is older than 4" in holder.problem
            assert generation_of(holder) == 4


async def test_a_control_plane_killed_amid_reloads_loses_nothing_and_the_other_goes_on(tmp_path: Path) -> None:
    async with pair(tmp_path, shared_file(tmp_path)) as (one, two):
        answered = [await reloaded(one, 1)]

        async def reload_on() -> None:
            with suppress(grpc.aio.AioRpcError):
                while True:
                    answered.append(await reloaded(one, 1 + len(answered) % 20))

        for moment in range(3):
            reloading = asyncio.create_task(reload_on())
            so_far = len(answered)
            await eventually(
                lambda so_far=so_far, moment=moment: len(answered) - so_far > moment, bool, within_s=FOLLOWED_S
            )
            await asyncio.sleep(0.003 * moment)
            await one.kill()
            await reloading
            stored = await generations(two)
            assert stored == list(range(len(stored), 0, -1))
            assert set(answered) <= set(stored)
            await eventually_async(
                two.in_force, lambda found, newest=stored[0]: found[1] == newest, within_s=FOLLOWED_S
            )
            assert await reloaded(two, 30 + moment) == stored[0] + 1
            await one.start()
            assert await one.in_force() == await two.in_force()


async def test_one_edit_of_a_folder_that_both_watch_is_one_generation(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "shared_folder")
    (folder / "a.yaml").write_text(top_k_yaml(1))
    flags = (*shared_file(tmp_path), "--policy-folder", str(folder))
    async with pair(tmp_path, flags) as (one, two):
        for generation in (2, 3):
            (folder / "a.yaml").write_text(top_k_yaml(generation))
            for plane in (one, two):
                await eventually_async(
                    plane.in_force, lambda found, wanted=generation: found[1] == wanted, within_s=FOLLOWED_S
                )
        assert await reloaded(two, 17) == 4
        await asyncio.sleep(2.5)  # both folders are looked at twice more
        assert await generations(one) == [4, 3, 2, 1]
        response = await one.call("ListDataPlaneStatuses")
        assert response.folder_error == ""
