"""kill -9 amid commits: what was acknowledged is there, once and whole."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np

from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.model import SYSTEM_SCOPE
from tests.contract.builders import MODEL, fields_of

ROUNDS = 3
SEED = 20261130


def run_and_kill(path: Path, name: str, after_lines: int) -> set[str]:
    """Kills a committing process once it has acknowledged some; returns all that it acknowledged."""
    command = [sys.executable, "-m", "tests.fault.committing_child", str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [child.stdout.readline().strip() for _ in range(after_lines)]
        child.kill()
        acknowledged += [line.strip() for line in child.stdout if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL
    assert len(acknowledged) == len(set(acknowledged))
    return set(acknowledged)


def halves(path: Path) -> dict[str, int]:
    """Rows without their other half, by kind; and how many integrity problems there are."""
    questions = {
        "memory without version": "SELECT count(*) FROM memories WHERE memory_id NOT IN"
        " (SELECT memory_id FROM memory_versions)",
        "memory without outbox": "SELECT count(*) FROM memories WHERE memory_id NOT IN (SELECT memory_id FROM outbox)",
        "memory without embedding": "SELECT count(*) FROM memories WHERE memory_id NOT IN"
        " (SELECT memory_id FROM embeddings)",
        "version without memory": "SELECT count(*) FROM memory_versions WHERE memory_id NOT IN"
        " (SELECT memory_id FROM memories)",
        "outbox without memory": "SELECT count(*) FROM outbox WHERE memory_id NOT IN (SELECT memory_id FROM memories)",
        "outbox twice": "SELECT count(*) - count(DISTINCT memory_id) FROM outbox",
    }
    connection = sqlite3.connect(path)
    found = {kind: int(connection.execute(question).fetchone()[0]) for kind, question in questions.items()}
    found["integrity"] = sum(row != ("ok",) for row in connection.execute("PRAGMA integrity_check"))
    connection.close()
    return found


async def stored_ids(path: Path) -> list[str]:
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    deadline_s = asyncio.get_running_loop().time() + 30
    rows = await store.scan("", 10_000, deadline_s, MODEL)
    fetched = await store.fetch(SYSTEM_SCOPE, [row.memory_id for row in rows], MODEL, 0, deadline_s)
    await store.close()
    assert len(fetched) == len(rows)
    return [row.memory_id for row in rows]


async def test_acknowledged_commits_survive_kill_9_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    draws = np.random.default_rng(SEED)
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        after_lines = int(draws.integers(50, 1_200))
        acknowledged |= await asyncio.to_thread(run_and_kill, path, str(number), after_lines)
        found = await stored_ids(path)
        assert len(found) == len(set(found))
        assert acknowledged <= set(found)
        assert set(halves(path).values()) == {0}
