import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane import reload as reload_module
from controlplane.documents import Document
from controlplane.reload import Command, Reloader
from controlplane.revisions import Revision
from controlplane.snapshots import SnapshotBuilder
from controlplane.sqlite_revisions import SqliteRevisions
from controlplane.standing import Parts
from memplane.errors import InvalidField, PermissionDenied, PolicyShrinks, RequestIdReused, StaleEtag, Unavailable
from tests.unit.controlplane.parts import BROKEN, InlineCompiler, make_parts, policy, started


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    made = await make_parts(tmp_path)
    yield made
    await made.store.close()


def in_force(parts: Parts) -> tuple[str, int]:
    target = parts.snapshots.target
    return target.version, target.generation


async def newest_of(parts: Parts) -> Revision | None:
    return (await parts.store.head()).revision


async def test_an_accepted_set_is_stored_in_force_and_published(parts: Parts) -> None:
    reloader = await started(parts)
    response = await reloader.reload(Command(policy(7), "ann", comment="why"))
    assert response.accepted
    assert in_force(parts) == (response.revision.version_info, 1)
    assert parts.fleet.target == parts.snapshots.target
    stored = await newest_of(parts)
    assert stored is not None
    assert (stored.author, stored.comment, stored.documents) == ("ann", "why", tuple(policy(7)))


async def test_a_refused_set_changes_nothing_and_tells_why(parts: Parts) -> None:
    reloader = await started(parts)
    await reloader.reload(Command(policy(7), "ann"))
    before = in_force(parts)
    response = await reloader.reload(Command(BROKEN, "ann"))
    assert not response.accepted
    assert response.total_diagnostics == len(response.diagnostics) == 1
    assert response.revision.generation == 1
    assert in_force(parts) == before
    assert len(await parts.store.page(100, 10)) == 1


async def test_the_same_content_is_accepted_without_a_new_generation(parts: Parts) -> None:
    reloader = await started(parts)
    await reloader.reload(Command(policy(7), "ann"))
    response = await reloader.reload(Command(policy(7), "bob"))
    assert response.accepted
    assert (response.revision.generation, response.revision.author) == (1, "ann")


async def test_old_content_again_is_a_new_generation(parts: Parts) -> None:
    reloader = await started(parts)
    for top_k in (7, 8, 7):
        response = await reloader.reload(Command(policy(top_k), "ann"))
    assert response.revision.generation == 3


async def test_validate_only_changes_nothing(parts: Parts) -> None:
    reloader = await started(parts)
    response = await reloader.reload(Command(policy(7), "ann", validate_only=True, request_id="r"))
    assert not response.accepted
    assert response.total_diagnostics == 0
    assert parts.snapshots.current is None
    assert await newest_of(parts) is None


async def test_a_stale_etag_is_refused_and_the_current_one_accepted(parts: Parts) -> None:
    reloader = await started(parts)
    first = await reloader.reload(Command(policy(7), "ann"))
    second = await reloader.reload(Command(policy(8), "ann", etag=first.revision.etag))
    assert second.accepted
    with pytest.raises(StaleEtag):
        await reloader.reload(Command(policy(9), "ann", etag=first.revision.etag))
    assert in_force(parts)[1] == 2


async def test_a_retry_returns_the_first_answer_even_after_newer_reloads(parts: Parts) -> None:
    reloader = await started(parts)
    command = Command(policy(7), "ann", request_id="r", payload_sha256="p")
    first = await reloader.reload(command)
    await reloader.reload(Command(policy(8), "ann"))
    assert await reloader.reload(command) == first
    assert in_force(parts)[1] == 2


async def test_a_request_id_with_another_payload_is_refused(parts: Parts) -> None:
    reloader = await started(parts)
    command = Command(policy(7), "ann", request_id="r", payload_sha256="p")
    await reloader.reload(command)
    with pytest.raises(RequestIdReused):
        await reloader.reload(replace(command, documents=policy(8), payload_sha256="q"))


async def test_a_set_that_takes_a_namespace_away_needs_allow_shrink(parts: Parts) -> None:
    reloader = await started(parts)
    override = b"namespace_policy:\n  overrides:\n    dept.sales:\n      retrieve_policy:\n        top_k: 3\n"
    await reloader.reload(Command([Document("n.yaml", override)], "ann"))
    with pytest.raises(PolicyShrinks):
        await reloader.reload(Command(policy(7), "ann"))
    assert in_force(parts)[1] == 1
    assert (await reloader.reload(Command(policy(7), "ann", allow_shrink=True))).accepted


async def test_concurrent_reloads_are_taken_one_after_the_other(parts: Parts) -> None:
    reloader = await started(parts)
    responses = await asyncio.gather(*(reloader.reload(Command(policy(k), "ann")) for k in range(1, 21)))
    assert sorted(response.revision.generation for response in responses) == list(range(1, 21))
    latest = await newest_of(parts)
    assert latest is not None
    assert in_force(parts) == (latest.version, latest.generation) == (latest.version, 20)


async def test_a_caller_that_goes_away_does_not_stop_a_reload_half_way(parts: Parts) -> None:
    reloader = await started(parts)
    task = asyncio.create_task(reloader.reload(Command(policy(7), "ann")))
    await asyncio.sleep(0)
    task.cancel()
    await reloader._standing.drain()
    assert in_force(parts)[1] == 1


@pytest.mark.parametrize(
    ("owner", "step"),
    [(InlineCompiler, "compile"), (reload_module, "shrinks"), (SnapshotBuilder, "build"), (SqliteRevisions, "write")],
)
async def test_a_reload_that_fails_at_any_step_changes_nothing_and_the_next_one_works(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    reloader = await started(parts)
    await reloader.reload(Command(policy(7), "ann"))
    before = parts.snapshots.current

    def fail(*_arguments: object) -> None:
        raise Unavailable(step)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        with pytest.raises(Unavailable, match=step):
            await reloader.reload(Command(policy(8), "ann", request_id="r", payload_sha256="p"))
    assert parts.snapshots.current is before
    assert parts.fleet.target == parts.snapshots.target
    assert [item.generation for item in await parts.store.page(100, 10)] == [1]
    assert await parts.store.answer("ann", "r", parts.clock.now_us()) is None
    assert (await reloader.reload(Command(policy(8), "ann"))).revision.generation == 2


async def test_without_a_folder_the_documents_are_required(parts: Parts) -> None:
    reloader = await started(parts)
    with pytest.raises(InvalidField):
        await reloader.reload(Command(None, "ann"))


async def test_an_unreadable_folder_is_a_diagnostic(tmp_path: Path) -> None:
    parts = await make_parts(tmp_path, tmp_path / "nowhere")
    reloader = await started(parts)
    response = await reloader.reload(Command(None, "ann"))
    assert [item.code for item in response.diagnostics] == ["FOLDER_UNREADABLE"]
    await parts.store.close()


async def test_a_restart_puts_the_last_accepted_set_in_force_and_counts_on(tmp_path: Path) -> None:
    before = await make_parts(tmp_path)
    reloader = await started(before)
    for top_k in (7, 8):
        await reloader.reload(Command(policy(top_k), "ann"))
    await before.store.close()
    after = await make_parts(tmp_path)
    reloader = await started(after)
    assert in_force(after) == in_force(before)
    assert (await reloader.reload(Command(policy(9), "ann"))).revision.generation == 3
    await after.store.close()


async def test_the_folder_does_not_undo_an_inline_reload_also_after_a_restart(tmp_path: Path) -> None:
    before = await make_parts(tmp_path)
    reloader = await started(before)
    await reloader.take_folder(policy(7))
    held = reloader.folder
    assert held.refusal == ""
    await reloader.reload(Command(policy(8), "ann"))
    assert reloader.folder == held
    await before.store.close()
    after = await make_parts(tmp_path)
    reloader = await started(after)
    assert reloader.folder == held
    await after.store.close()


async def test_a_refused_folder_is_remembered_and_told(parts: Parts) -> None:
    reloader = await started(parts)
    await reloader.take_folder(policy(7))
    await reloader.take_folder(BROKEN)
    assert "retrieve.yaml:2:3" in reloader.folder.refusal
    assert reloader.folder == await parts.store.folder(parts.holder)
    assert reloader.folder.version != parts.snapshots.target.version


async def test_what_the_folder_held_a_moment_ago_does_not_replace_what_it_holds_now(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "retrieve.yaml").write_bytes(policy(9)[0].content)
    parts = await make_parts(tmp_path, folder)
    reloader = await started(parts)
    await reloader.reload(Command(None, "ann"))
    held = reloader.folder
    await reloader.take_folder(policy(8))
    assert in_force(parts)[1] == 1
    assert reloader.folder == held
    (folder / "retrieve.yaml").unlink()
    folder.rmdir()
    await reloader.take_folder(policy(8))
    assert reloader.folder == held
    await parts.store.close()


async def test_unchanged_content_is_not_compiled_again(parts: Parts) -> None:
    reloader = await started(parts)
    await reloader.reload(Command(policy(7), "ann"))
    await reloader.take_folder(policy(7))
    assert isinstance(parts.compiler, InlineCompiler)
    assert parts.compiler.calls == 1


async def test_checking_documents_changes_nothing(parts: Parts) -> None:
    reloader: Reloader = await started(parts)
    assert (await reloader.compile(policy(7))).policy is not None
    assert parts.snapshots.current is None


async def test_who_may_not_any_more_when_the_turn_comes_changes_nothing(parts: Parts) -> None:
    reloader = await started(parts)

    def refuse() -> None:
        raise PermissionDenied("policy.reload")

    with pytest.raises(PermissionDenied):
        await reloader.reload(Command(policy(7), "ann"), refuse)
    assert parts.snapshots.current is None
