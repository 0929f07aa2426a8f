"""The watch on real folders, with short times; tests/e2e/test_policy_watch.py has the real ones."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from controlplane import watch as watch_module
from controlplane.documents import Document
from controlplane.revisions import FolderContent
from controlplane.watch import FolderWatch, WatchOptions
from memplane.errors import Unavailable
from memplane.policy.codec import version_of
from tests.deadline import eventually

QUICK = WatchOptions(poll_s=0.1, settle_s=0.02)
SLOW_POLL = WatchOptions(poll_s=60.0, settle_s=0.02)


class RecordingSink:
    """Refuses documents that say `bad`, fails on those that say `raise`."""

    def __init__(self) -> None:
        self.folder = FolderContent()
        self.taken: list[str] = []

    async def take_folder(self, documents: Sequence[Document]) -> None:
        text = "|".join(document.content.decode(errors="replace") for document in documents)
        if "raise" in text:
            raise RuntimeError("the sink failed")
        version = version_of([(document.name, document.content) for document in documents])
        self.folder = FolderContent(version, "it says bad" if "bad" in text else "")
        self.taken.append(text)

    def last(self) -> str:
        return self.taken[-1] if self.taken else ""


@asynccontextmanager
async def watching(folder: Path, sink: RecordingSink, options: WatchOptions = QUICK) -> AsyncIterator[FolderWatch]:
    watch = FolderWatch(folder, sink, options)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    return made


def make(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "a.yaml").write_text(text)


def swap(folder: Path, name: str, files: dict[str, str]) -> None:
    """What Kubernetes does to a mounted ConfigMap: a new folder, and a `..data` link renamed over the old one."""
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(text)
        if not (folder / file).is_symlink():
            (folder / file).symlink_to(Path("..data") / file)
    link = folder / "..data_tmp"
    link.symlink_to(name)
    old = os.readlink(folder / "..data") if (folder / "..data").is_symlink() else None
    link.replace(folder / "..data")
    if old is not None:
        shutil.rmtree(folder / old)


async def test_every_swap_of_a_config_map_is_taken_whole(folder: Path) -> None:
    sink = RecordingSink()
    swap(folder, "..0", {"a.yaml": "0", "b.yaml": "0"})
    async with watching(folder, sink):
        for number in range(1, 21):
            swap(folder, f"..{number}", {"a.yaml": str(number), "b.yaml": str(number)})
            await eventually(sink.last, f"{number}|{number}".__eq__, 3.0)
    assert all(text.split("|")[0] == text.split("|")[1] for text in sink.taken)


async def test_an_event_wakes_the_watch_long_before_the_poll(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_text("0")
    async with watching(folder, sink, SLOW_POLL) as watch:
        await watch.look()
        for number in range(1, 11):  # the first may come before the watch listens
            (folder / "a.yaml").write_text(str(number))
            with suppress(AssertionError):
                await eventually(sink.last, str(number).__eq__, 1.0)
                break
    assert sink.last() not in ("", "0")


async def test_a_deleted_and_recreated_folder_is_watched_on(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_text("1")
    async with watching(folder, sink) as watch:
        await eventually(sink.last, "1".__eq__)
        shutil.rmtree(folder)
        await eventually(lambda: watch.last_error, bool)
        make(folder, "2")
        await eventually(sink.last, "2".__eq__)
        assert watch.last_error == ""
        assert watch.alive
    assert not watch.alive


async def test_a_folder_that_comes_later_is_taken(tmp_path: Path) -> None:
    sink = RecordingSink()
    async with watching(tmp_path / "later", sink):
        make(tmp_path / "later", "1")
        await eventually(sink.last, "1".__eq__)


async def test_a_refused_content_is_told_until_a_good_one_comes(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_bytes(b"bad \xff")
    async with watching(folder, sink) as watch:
        await eventually(lambda: watch.last_error, "it says bad".__eq__)
        (folder / "a.yaml").write_text("good")
        await eventually(lambda: watch.last_error, "".__eq__)
    assert sink.last() == "good"


async def test_a_fault_is_counted_and_told_and_the_watch_goes_on(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_text("raise")
    async with watching(folder, sink) as watch:
        await eventually(lambda: watch.error_count, lambda count: count >= 2)
        assert "the sink failed" in watch.last_error
        (folder / "a.yaml").write_text("good")
        await eventually(sink.last, "good".__eq__)
        assert watch.last_error == ""


async def test_without_file_events_the_poll_finds_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_arguments: object, **_options: object) -> AsyncIterator[set[object]]:
        raise OSError("no inotify watches left")
        yield set()

    monkeypatch.setattr(watch_module, "awatch", broken)
    sink = RecordingSink()
    async with watching(folder, sink) as watch:
        (folder / "a.yaml").write_text("1")
        await eventually(sink.last, "1".__eq__)
        await eventually(lambda: watch.error_count, bool)


async def test_an_empty_folder_is_no_policy(folder: Path) -> None:
    sink = RecordingSink()
    watch = FolderWatch(folder, sink, QUICK)
    await watch.look()
    assert sink.taken == []
    assert "no policy documents" in watch.last_error


async def test_content_that_the_folder_held_before_is_left_alone(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_text("1")
    sink.folder = FolderContent(version_of([("a.yaml", b"1")]))
    await FolderWatch(folder, sink, QUICK).look()
    assert sink.taken == []


async def test_backups_and_drafts_of_editors_are_no_documents(folder: Path) -> None:
    sink = RecordingSink()
    (folder / "a.yaml").write_text("1")
    for name in ("a.yaml~", ".a.yaml.swp", "#a.yaml#", ".#a.yaml", "4913", "sedXy12"):
        (folder / name).write_text("draft")
    await FolderWatch(folder, sink, QUICK).look()
    assert sink.taken == ["1"]


async def test_a_folder_that_nobody_watches_is_a_problem(folder: Path) -> None:
    (folder / "a.yaml").write_text("good")
    async with watching(folder, RecordingSink()) as watch:
        await eventually(lambda: watch.alive, bool)
        assert watch.problem == watch.last_error
    assert "is not watched" in watch.problem


async def test_an_error_that_is_no_defect_is_told_without_a_trace(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class FullDisk(RecordingSink):
        async def take_folder(self, documents: Sequence[Document]) -> None:
            raise Unavailable("revision store")

    (folder / "a.yaml").write_text("good")
    async with watching(folder, FullDisk()) as watch:
        await eventually(lambda: watch.last_error, bool)
    assert watch.last_error == "revision store is unavailable"
    assert [record.exc_info for record in caplog.records] == [None]
