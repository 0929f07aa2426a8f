import asyncio
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.adapters.sqlite.connection import SqliteOptions, StoreInUse
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import Erasure
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, State
from dataplane.ports import ListQuery
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of, vector_of

SECRET = "a sentence that must not stay"
LOOKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], uri=True, timeout=0)
try:
    connection.execute("SELECT count(*) FROM memories").fetchone()
    print("read", flush=True)
except sqlite3.OperationalError as error:
    print(error, flush=True)
sys.stdin.read()
"""


async def test_a_file_is_open_once(store: SqliteRecordStore, path: Path) -> None:
    with pytest.raises(StoreInUse, match="is in use by another data plane or program"):
        await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    await store.close()
    again = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    await again.close()


def look_into(path: Path) -> subprocess.Popen[str]:
    """A program that opens the file, reads it, and has it open until its input ends; it prints whether it could."""
    arguments = [sys.executable, "-c", LOOKING, f"{path.as_uri()}?mode=ro"]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_a_file_that_another_program_has_open_is_not_opened(path: Path) -> None:
    options = SqliteOptions(busy_timeout_ms=20)
    await (await SqliteRecordStore.open(path, options=options, fields_of=fields_of)).close()
    with await asyncio.to_thread(look_into, path) as other:
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == "read\n"
        with pytest.raises(StoreInUse, match="or program"):
            await SqliteRecordStore.open(path, options=options, fields_of=fields_of)
        other.communicate("")
    await (await SqliteRecordStore.open(path, options=options, fields_of=fields_of)).close()


async def test_an_open_file_is_locked_to_other_programs(store: SqliteRecordStore, path: Path) -> None:
    assert await store.count(asyncio.get_running_loop().time() + 10) == 0
    other = await asyncio.to_thread(look_into, path)
    assert (await asyncio.to_thread(other.communicate, ""))[0] == "database is locked\n"


async def test_the_files_are_for_their_owner_alone(store: SqliteRecordStore, path: Path, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {file.name.removeprefix(path.name) for file in files} == {"", "-wal", ".lock"}


@pytest.mark.parametrize("name", ["a b?c#d%20.db", "中文.db", "new/folder/x.db"])
async def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    opened = await SqliteRecordStore.open(tmp_path / name, options=SqliteOptions(), fields_of=fields_of)
    await opened.close()
    assert (tmp_path / name).exists()


@pytest.fixture
def rubbish(path: Path) -> bytes:
    content = b"not a database" * 1_000
    path.write_bytes(content)
    return content


def corrupt(path: Path) -> None:
    """Overwrites every page after those of the empty tables."""
    kept = 60 * 4096
    content = path.read_bytes()
    path.write_bytes(content[:kept] + b"\xee" * (len(content) - kept))


async def test_a_file_that_is_no_database_is_unavailable_and_left_alone(path: Path, rubbish: bytes) -> None:
    with pytest.raises(BackendUnavailable) as raised:
        await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    assert raised.value == BackendUnavailable("record_store", "SQLITE_NOTADB")
    assert await asyncio.to_thread(path.read_bytes) == rubbish


async def test_a_folder_in_place_of_the_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="Is a directory"):
        await SqliteRecordStore.open(tmp_path, options=SqliteOptions(), fields_of=fields_of)


async def test_a_full_disk_is_unavailable_and_the_store_lives_on(path: Path, deadline_s: float) -> None:
    options = SqliteOptions(max_size_bytes=1_000_000)
    store = await SqliteRecordStore.open(path, options=options, fields_of=fields_of)
    await store.commit([commit_of(memory_of(body=b"x" * 200_000))], deadline_s)
    with pytest.raises(BackendUnavailable) as raised:
        await store.commit([commit_of(memory_of("mem_2", body=b"x" * 600_000))], deadline_s)
    assert raised.value == BackendUnavailable("record_store", "SQLITE_FULL")
    assert await store.get(scope_of(), "mem_2", deadline_s) is None
    [result] = await store.commit([commit_of(memory_of("mem_3"))], deadline_s)
    assert result.error is None
    assert await store.last_position(deadline_s) == result.position == 2
    await store.close()


async def test_a_lock_of_another_program_is_unavailable_until_it_goes(
    store: SqliteRecordStore, path: Path, deadline_s: float
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="SQLITE_BUSY"):
        await store.commit([commit_of(memory_of())], deadline_s)
    assert await store.count(deadline_s) == 0
    other.execute("ROLLBACK")
    other.close()
    [result] = await store.commit([commit_of(memory_of())], deadline_s)
    assert result.error is None


async def test_a_corrupt_page_is_unavailable_to_reads_and_writes(path: Path, deadline_s: float) -> None:
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    await store.commit([commit_of(memory_of(f"mem_{n}", body=b"x" * 500)) for n in range(500)], deadline_s)
    await store.close()
    await asyncio.to_thread(corrupt, path)
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match="SQLITE_CORRUPT"):
            await store.get(scope_of(), "mem_499", deadline_s)
        with pytest.raises(BackendUnavailable, match="SQLITE_CORRUPT"):
            await store.list_memories(scope_of(), ListQuery((State.ACTIVE,), EVERYTHING, 10), deadline_s)
        with pytest.raises(BackendUnavailable, match="SQLITE_CORRUPT"):
            await store.commit([commit_of(memory_of("mem_x"))], deadline_s)
    await store.close()


async def test_a_write_that_cannot_be_stored_does_not_touch_its_neighbours(
    store: SqliteRecordStore, deadline_s: float
) -> None:
    too_large = store.commit([commit_of(memory_of("mem_big", access_count=2**63))], deadline_s)
    no_text = store.commit([commit_of(memory_of("mem_bad", subject_id="\ud83d"))], deadline_s)
    no_value = store.commit([commit_of(memory_of("mem_none", session_id=None))], deadline_s)
    good = store.commit([commit_of(memory_of("mem_1"))], deadline_s)
    first, second, third, fourth = await asyncio.gather(too_large, no_text, no_value, good, return_exceptions=True)
    assert isinstance(first, OverflowError)
    assert isinstance(second, UnicodeEncodeError)
    assert third == BackendUnavailable("record_store", "SQLITE_CONSTRAINT_NOTNULL")
    assert not isinstance(fourth, BaseException)
    assert await store.count(deadline_s) == 1


async def test_erased_content_is_in_none_of_the_files(store: SqliteRecordStore, path: Path, deadline_s: float) -> None:
    vector = vector_of(1_000, 384)
    secret = memory_of("mem_1", content=SECRET * 400, fact_key=SECRET, category=SECRET)
    others = [commit_of(memory_of(f"mem_{n}"), embedding=vector_of(n, 384)) for n in range(2, 200)]
    await store.commit([commit_of(secret, embedding=vector), *others], deadline_s)

    def found() -> set[str]:
        files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
        content = b"".join(file.read_bytes() for file in files)
        traces = {"text": SECRET.encode(), "hash": secret.content_hash.encode(), "vector": vector.tobytes()[:64]}
        return {name for name, trace in traces.items() if trace in content}

    assert found() == {"text", "hash", "vector"}
    await store.erase(Erasure(scope=scope_of(), memory_id="mem_1", now_us=NOW_US, principal_id="alice"), deadline_s)
    assert found() == set()


async def test_a_long_read_past_its_deadline_is_broken_off(store: SqliteRecordStore, deadline_s: float) -> None:
    commits = [commit_of(memory_of(f"mem_{n}", state=State.SOFT_DELETED, body=b"x")) for n in range(2_000)]
    await store.commit(commits, deadline_s)
    loop = asyncio.get_running_loop()
    query = ListQuery((State.ACTIVE,), EVERYTHING, 10)
    with pytest.raises(BackendUnavailable, match="deadline"):
        await store.list_memories(scope_of(), query, loop.time())
    assert await store.list_memories(scope_of(), query, deadline_s) == []


async def test_what_was_accepted_before_closing_is_stored(path: Path, deadline_s: float) -> None:
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    writes = [asyncio.ensure_future(store.commit([commit_of(memory_of(f"mem_{n}"))], deadline_s)) for n in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert all(result.error is None for [result] in await asyncio.gather(*writes))
    again = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    assert await again.count(deadline_s) == 300
    await again.close()


async def test_a_cancelled_caller_does_not_stop_the_writer(store: SqliteRecordStore, deadline_s: float) -> None:
    writes = [asyncio.ensure_future(store.commit([commit_of(memory_of(f"mem_{n}"))], deadline_s)) for n in range(20)]
    await asyncio.sleep(0)
    for write in writes[::2]:
        write.cancel()
    await asyncio.gather(*writes, return_exceptions=True)
    [result] = await store.commit([commit_of(memory_of("mem_last"))], deadline_s)
    assert result.error is None
    assert await store.count(deadline_s) >= 11
