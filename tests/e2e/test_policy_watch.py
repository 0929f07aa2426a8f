"""A real control plane watches a real folder, with its real times: 1 s poll, 100 ms to hold still."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deadline import eventually_async
from tests.e2e.control_process import ControlProcess, control_plane, top_k_yaml

WITHIN_S = 10.0
"""How long a change may take on a machine busy with other tests; it takes 0.2 to 1.2 s on a quiet one (2026-11)."""


def swap(folder: Path, name: str, files: dict[str, str]) -> None:
    """What Kubernetes does to a mounted ConfigMap."""
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(text)
        if not (folder / file).is_symlink():
            (folder / file).symlink_to(Path("..data") / file)
    old = os.readlink(folder / "..data") if (folder / "..data").is_symlink() else None
    (folder / "..data_tmp").symlink_to(name)
    (folder / "..data_tmp").replace(folder / "..data")
    if old is not None:
        shutil.rmtree(folder / old)


def pair(number: int) -> dict[str, str]:
    """Two documents that belong together."""
    return {"a.yaml": top_k_yaml(number), "b.yaml": f"write_policy:\n  batch_size: {number}\n"}


def vim(folder: Path, text: str) -> None:
    """Renames the file to a backup, writes a new one, deletes the backup; tries the folder with a file `4913` first."""
    (folder / "4913").write_text("")
    (folder / "4913").unlink()
    (folder / "a.yaml").rename(folder / "a.yaml~")
    (folder / "a.yaml").write_text(text)
    (folder / "a.yaml~").unlink()


def emacs(folder: Path, text: str) -> None:
    """Locks with a dangling link, keeps a backup copy, saves on its own meanwhile, writes in place."""
    (folder / ".#a.yaml").symlink_to("someone@host.1234")
    (folder / "#a.yaml#").write_text(text)
    shutil.copy(folder / "a.yaml", folder / "a.yaml~")
    (folder / "a.yaml").write_text(text)
    (folder / "#a.yaml#").unlink()
    (folder / ".#a.yaml").unlink()


def sed(folder: Path, text: str) -> None:
    """Rewrites into a temporary file and renames it over."""
    number = text.rsplit(":", 1)[1].strip()
    subprocess.run(["sed", "-i", f"s/top_k: .*/top_k: {number}/", str(folder / "a.yaml")], check=True)


def in_place(folder: Path, text: str) -> None:
    """Truncates and writes."""
    (folder / "a.yaml").write_text(text)


def atomic(folder: Path, text: str) -> None:
    """Writes a draft and renames it over."""
    (folder / "draft.tmp").write_text(text)
    (folder / "draft.tmp").replace(folder / "a.yaml")


async def becomes(control: ControlProcess, text: str) -> None:
    await eventually_async(control.document, text.__eq__, WITHIN_S)


async def test_twenty_swaps_of_a_config_map_each_come_in_force_whole(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    swap(tmp_path / "policies", "..0", pair(30))
    async with control_plane(tmp_path) as control:
        for number in range(1, 21):
            swap(control.folder, f"..{number}", pair(number))
            await becomes(control, top_k_yaml(number))
        for number in range(31, 51):
            swap(control.folder, f"..{number}", pair(number))
        await becomes(control, top_k_yaml(50))
        listed = (await control.call("ListPolicySetRevisions")).revisions
        for revision in listed:
            await assert_whole(control, revision.generation)


async def assert_whole(control: ControlProcess, generation: int) -> None:
    first, second = await control.document_of(generation, "a.yaml"), await control.document_of(generation, "b.yaml")
    assert first.rsplit(":", 1)[1] == second.rsplit(":", 1)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    (made / "a.yaml").write_text(top_k_yaml(1))
    return made


async def test_every_way_to_save_a_file_comes_in_force(tmp_path: Path, folder: Path) -> None:
    saves: tuple[Callable[[Path, str], None], ...] = (vim, emacs, sed, in_place, atomic)
    async with control_plane(tmp_path) as control:
        for number, save in enumerate(saves * 2, start=10):
            save(folder, top_k_yaml(number))
            await becomes(control, top_k_yaml(number))


async def test_a_half_written_file_ends_on_the_whole_one(tmp_path: Path, folder: Path) -> None:
    text = top_k_yaml(7) + "write_policy:\n  threshold: 0.65\n  short_term_threshold: 0.2\n"
    async with control_plane(tmp_path) as control:
        with (folder / "a.yaml").open("w") as file:
            for piece in (text[:30], text[30:47], text[47:]):
                file.write(piece)
                file.flush()
                await asyncio.sleep(0.4)
        await becomes(control, text)


async def test_after_invalid_utf_8_and_bad_yaml_a_good_file_comes_in_force(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        for count, bad in enumerate((b"retrieve_policy:\n  top_k: \xff\xfe\n", b"retrieve_policy: [unclosed\n"), 1):
            (folder / "a.yaml").write_bytes(bad)
            await eventually_async(control.log, lambda log, seen=count: log.count("is refused") == seen, WITHIN_S)
            assert await control.document() == top_k_yaml(1)
        (folder / "a.yaml").write_text(top_k_yaml(5))
        await becomes(control, top_k_yaml(5))
        assert (await control.in_force())[1] == 2


async def test_a_deleted_and_recreated_folder_is_watched_on(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        shutil.rmtree(folder)
        await eventually_async(control.log, lambda log: "cannot read" in log, WITHIN_S)
        assert (await control.in_force())[1] == 1
        recreate(folder, 6)
        await becomes(control, top_k_yaml(6))
        (folder / "a.yaml").write_text(top_k_yaml(7))
        await becomes(control, top_k_yaml(7))


def recreate(folder: Path, number: int) -> None:
    folder.mkdir()
    (folder / "a.yaml").write_text(top_k_yaml(number))
