"""The command line against both planes, started by `memplane up`. About 20 seconds."""

import asyncio
import stat
from pathlib import Path

import psutil

from tests.e2e.commands import connection, memplane, started, up

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
        assert psutil.pid_exists(announced["pid"])
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    assert not psutil.pid_exists(announced["pid"])


async def test_a_plane_that_cannot_start_says_why(tmp_path):
    finished = await memplane("control", "--listen", "nowhere", "--data-dir", "control", cwd=tmp_path)
    assert finished.code == 1
    assert "'nowhere' is not HOST:PORT" in finished.stderr


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
