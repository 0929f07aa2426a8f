"""Tasks end, also those that swallow a cancellation."""

import asyncio

import pytest

from dataplane.ending import end


async def test_a_task_that_swallows_its_first_cancellation_ends() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed += 1

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.sleep(0)
    await end(*tasks)
    assert swallowed == 1
    assert all(task.done() for task in tasks)


async def test_nothing_to_end_is_ended() -> None:
    await end()


async def test_what_a_task_failed_with_before_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise ValueError("a defect")

    task = asyncio.create_task(failing(), name="the-loop")
    await asyncio.wait([task])
    await end(task)
    assert "the-loop had failed" in caplog.text
    assert "a defect" in caplog.text
