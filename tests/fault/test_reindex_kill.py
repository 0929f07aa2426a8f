"""kill -9 in the middle of a rebuild: whoever comes next goes on with it to the end."""

import signal
import subprocess
import sys
from pathlib import Path

from memplane.client.maintenance import progress_of, result_of
from tests.integration.test_embedding_change import fill
from tests.integration.upkeep_plane import NEW, OLD, done, upkeep_plane

COUNT = 400
ENOUGH = 60
"""Memories in line when the process is killed."""


def killed_at(folder: Path) -> int:
    """How many memories were in line when the rebuilding process was killed."""
    command = [sys.executable, "-m", "tests.fault.reindexing_child", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        enqueued = next((int(line) for line in child.stdout if int(line) >= ENOUGH), COUNT)
        child.kill()
    assert child.returncode == -signal.SIGKILL
    return enqueued


async def test_a_rebuild_survives_kill_9(tmp_path: Path) -> None:
    async with upkeep_plane(tmp_path, [OLD]) as plane:
        await fill(plane, COUNT)
    assert ENOUGH <= killed_at(tmp_path) < COUNT
    async with upkeep_plane(tmp_path, [OLD, NEW]) as plane, plane.maintenance() as client:
        (record,) = await plane.wired.records.list_operations("operations/reindex-", 10, float("inf"))
        assert not record.is_done
        assert plane.stores.spaces.current.model == OLD.model
        operation = await done(client, await client.operation(record.name))
        assert progress_of(operation).enqueued_count >= COUNT
        assert (result_of(operation).index_count, result_of(operation).activated) == (COUNT, True)
        assert plane.wired.stores.spaces.current.model == NEW.model
        checks = (await client.check_indexes(full=True)).checks
        assert [check.consistent for check in checks] == [True, True, True]
