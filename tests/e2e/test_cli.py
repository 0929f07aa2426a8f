"""The command line against both planes, started by `memplane up`. About 50 seconds."""

import asyncio
import os
import shutil
import stat
from pathlib import Path

import psutil

from tests.deadline import eventually_async
from tests.e2e.commands import connection, memplane, started, up
from tests.e2e.control_process import ADMIN_KEY, control_plane, foreign_key
from tests.e2e.data_process import DataProcess

SPACE = "dept.sales"


async def test_a_memory_lives_its_life_on_the_command_line(tmp_path):
    async with up(tmp_path) as (_, announced):
        env = connection(announced)

        async def run(*arguments: str):
            finished = await memplane(*arguments, "--json", cwd=tmp_path, env=env)
            assert finished.code == 0, finished.stderr
            return finished.json

        written = await run("write", SPACE, "Remember: Acme renews in March", "--source", "USER")
        memory_id = written["memory"]["id"]
        assert written["decision"]["action"] == "CREATED"
        found = await run("search", SPACE, "When does Acme renew?", "--at-least-as-fresh", written["consistency_token"])
        assert [hit["memory"]["id"] for hit in found["hits"]] == [memory_id]
        assert "Acme" in (await run("context", SPACE, "When does Acme renew?"))["context"]
        changed = await run("update", SPACE, memory_id, "--content", "Acme renews in April", "--reason", "moved")
        assert changed["memory"]["version"] == 2
        assert [each["change"] for each in await run("history", SPACE, memory_id)] == ["UPDATED", "CREATED"]
        assert (await run("get", SPACE, memory_id, "--version", "1"))["content"].endswith("March")
        assert [each["id"] for each in await run("list", SPACE)] == [memory_id]
        assert (await run("forget", SPACE, memory_id))["mode"] == "SOFT"
        assert await run("list", SPACE) == []
        assert (await run("fleet"))["data_planes"][0]["sync_state"] == "SYNCED"
        assert all(finding["ok"] for finding in await run("doctor"))


async def test_an_edited_line_governs_after_reload(tmp_path):
    async with up(tmp_path) as (_, announced):
        env = connection(announced)
        file = tmp_path / announced["policy"] / "retrieve.yaml"
        file.write_text(file.read_text().replace("top_k: 6", "top_k: 4"))
        reloaded = await memplane("policy", "reload", "--wait", "20", cwd=tmp_path, env=env)
        effective = await memplane(
            *("policy", "effective", SPACE, "--only", "retrieve_policy.top_k", "--json"), cwd=tmp_path, env=env
        )
        file.write_text(file.read_text().replace("top_k: 4", "top_k: many"))
        refused = await memplane("policy", "validate", str(file.parent), cwd=tmp_path, env=env)
    assert reloaded.code == 0, reloaded.stdout + reloaded.stderr
    (value,) = effective.json["values"]
    assert (value["value"], value["file"]) == (4, "retrieve.yaml")
    assert refused.code == 1
    assert "retrieve.yaml:4:" in refused.stdout


async def test_the_key_is_printed_once_and_goes_on_working(tmp_path):
    async with up(tmp_path) as (_, first):
        key = first["admin_key"]
        assert key.startswith("mpk_")
    async with up(tmp_path) as (_, second):
        assert second["admin_key"] is None
        known = await memplane("list", SPACE, cwd=tmp_path, env=connection(second, key))
        unknown = await memplane("list", SPACE, cwd=tmp_path, env=connection(second, "mpk_wrong"))
    assert known.code == 0, known.stderr
    assert (unknown.code, "UNAUTHENTICATED" in unknown.stderr) == (1, True)
    assert stat.S_IMODE((tmp_path / ".memplane").stat().st_mode) == 0o700
    assert not any(key.encode() in path.read_bytes() for path in _files(tmp_path))


async def test_up_ends_with_1_when_a_plane_dies_and_leaves_none_behind(tmp_path):
    async with up(tmp_path) as (process, announced):
        children = await asyncio.to_thread(psutil.Process(process.pid).children, recursive=True)
        psutil.Process(announced["control_pid"]).kill()
        assert await asyncio.wait_for(process.wait(), 60) == 1
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, 20)
    assert [child.cmdline() for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []


async def test_searches_go_on_when_the_control_plane_is_stopped_and_up_ends_with_0(tmp_path):
    async with up(tmp_path) as (process, announced):
        control = psutil.Process(announced["control_pid"])
        control.terminate()
        await asyncio.to_thread(psutil.wait_procs, [control], 30)
        found = await memplane("search", SPACE, "anything", "--json", cwd=tmp_path, env=connection(announced))
        asked = await memplane("fleet", cwd=tmp_path, env=connection(announced))
        assert process.returncode is None
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    assert (found.code, found.json["hits"]) == (0, [])
    assert (asked.code, "UNAVAILABLE" in asked.stderr) == (1, True)


async def test_a_plane_alone_announces_itself_and_ends_with_0_on_sigterm(tmp_path):
    arguments = ("control", "--listen", "127.0.0.1:0", "--data-dir", "control", "--json")
    async with started(*arguments, cwd=tmp_path) as (process, announced):
        assert announced["pid"] == process.pid  # one process: who kills it kills the plane
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    assert not psutil.pid_exists(announced["pid"])


BREAKS = {
    "broken YAML": lambda folder: (folder / "write.yaml").write_text("write_policy: ["),
    "empty file": lambda folder: (folder / "write.yaml").write_bytes(b""),
    "no UTF-8": lambda folder: (folder / "write.yaml").write_bytes(b"\xff\xfe"),
    "dangling link": lambda folder: (folder / "new.yaml").symlink_to("nowhere"),
    "fifo": lambda folder: os.mkfifo(folder / "new.yaml"),
    "no files": lambda folder: [file.unlink() for file in folder.iterdir()],
    "no folder": shutil.rmtree,
}


async def test_doctor_and_fleet_tell_what_is_wrong_with_the_policy_folder(tmp_path):
    policies = tmp_path / ".memplane" / "policies"
    async with up(tmp_path) as (_, announced):
        environment = connection(announced)
        assert (await memplane("doctor", cwd=tmp_path, env=environment)).code == 0
        for what, break_it in BREAKS.items():
            kept = shutil.copytree(policies, tmp_path / "kept")
            break_it(policies)
            await eventually_async(lambda: folder_error(tmp_path, environment), bool)
            found = await memplane("doctor", "--json", cwd=tmp_path, env=environment)
            (wrong,) = [each for each in found.json if not each["ok"]]
            assert (found.code, wrong["subject"]) == (1, "policy folder"), what
            assert "memplane policy validate" in wrong["advice"]
            shutil.rmtree(policies, ignore_errors=True)
            shutil.move(kept, policies)
            await eventually_async(lambda: folder_error(tmp_path, environment), "".__eq__)


async def folder_error(cwd: Path, environment: dict[str, str]) -> str:
    return str((await memplane("fleet", "--json", cwd=cwd, env=environment)).json["folder_error"])


async def test_doctor_tells_why_a_data_plane_has_no_policy(tmp_path):
    async with control_plane(tmp_path) as control:
        (control.folder / "a.yaml").write_text("retrieve_policy:\n  top_k: 7\n")
        foreign_key(tmp_path / "foreign.pub")
        data = DataProcess(tmp_path / "data", control.address, tmp_path / "foreign.pub")
        await data.start()
        environment = connection({"data": data.address, "control": control.address}, ADMIN_KEY)

        async def wrong() -> dict[str, dict[str, str]]:
            found = await memplane("doctor", "--json", cwd=tmp_path, env=environment)
            assert found.code == 1
            return {each["subject"]: each for each in found.json if not each["ok"]}

        def blames_the_key(found: dict[str, dict[str, str]]) -> bool:
            subjects = ("data plane has a policy", "data-1 policy")
            return all("--trusted-key" in found.get(subject, {}).get("advice", "") for subject in subjects)

        try:
            await eventually_async(wrong, blames_the_key, within_s=30)
        finally:
            await data.kill()
        found = await wrong()
        assert "nobody answers at" in found["data plane alive"]["detail"]
        assert "data plane takes writes" not in found


async def test_a_plane_that_cannot_start_says_why(tmp_path):
    finished = await memplane("control", "--listen", "nowhere", "--data-dir", "control", cwd=tmp_path)
    assert finished.code == 2
    assert "'nowhere' is not HOST:PORT" in finished.stderr


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_every_setting_of_a_plane_is_a_flag_and_others_are_refused(tmp_path):
    finished = await memplane("control", "--heartbeat-s", "99", cwd=tmp_path)
    assert (finished.code, "heartbeat-s: '99' is not a number from 0.1 to 5" in finished.stderr) == (2, True)
    finished = await memplane("data", "--metrics-listen", "none", "--no-such-flag", "x", cwd=tmp_path)
    assert (finished.code, "unrecognized arguments: --no-such-flag x" in finished.stderr) == (2, True)
