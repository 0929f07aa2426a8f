import asyncio

import psycopg
import pytest

from dataplane.adapters.postgres.faults import as_unavailable, remaining_s, translated
from dataplane.errors import BackendUnavailable


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (psycopg.errors.DiskFull("row (secret)"), "the server's disk is full (DiskFull, 53100)"),
        (psycopg.errors.UniqueViolation("Key (id)=(secret)"), "an error (UniqueViolation, 23505)"),
        (psycopg.OperationalError("host secret"), "the connection failed (OperationalError)"),
    ],
)
def test_an_error_is_told_without_the_drivers_words(error: psycopg.Error, words: str) -> None:
    assert as_unavailable(error).words == words


async def test_a_cancelled_task_ends_as_cancelled_whatever_the_driver_raises() -> None:
    async def work() -> None:
        with translated():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise psycopg.OperationalError("the connection is closed") from None

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_past_the_deadline_nothing_remains() -> None:
    now_s = asyncio.get_running_loop().time()
    assert 9 < remaining_s(now_s + 10) <= 10
    with pytest.raises(BackendUnavailable, match="deadline passed"):
        remaining_s(now_s)
