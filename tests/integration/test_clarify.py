"""A write that contradicts a memory of equal standing advises the agent to ask the user."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, running_plane

USER = memory_pb2.SOURCE_TYPE_USER


async def write(
    plane: Plane, content: str, source: memory_pb2.SourceType.ValueType, **fields: Any
) -> pb.WriteMemoryResponse:
    request = pb.WriteMemoryRequest(
        namespace="dept.sales",
        content=content,
        subject_id="u1",
        fact_key="u1.city",
        source=memory_pb2.Source(type=source),
        **fields,
    )
    return await plane.stub.WriteMemory(request, metadata=as_user())


def advice(response: pb.WriteMemoryResponse) -> list[str]:
    return [reason.message for reason in response.decision.reasons if reason.code == "CLARIFY"]


async def test_the_agent_is_told_to_ask_which_of_two_equal_statements_holds() -> None:
    async with running_plane() as plane:
        first = await write(plane, "The customer sits in Lisbon", USER)
        second = await write(plane, "The customer sits in Porto", USER)
        (told,) = advice(second)
        assert first.memory.id in told
        assert '"The customer sits in Porto" or, as before, "The customer sits in Lisbon"?' in told
        assert [conflict.memory_id for conflict in second.decision.conflicts] == [first.memory.id]


async def test_a_retry_hears_the_advice_without_the_words_which_are_kept_nowhere(tmp_path: Path) -> None:
    """The answer to a retry outlives the memories that it speaks of."""
    async with running_plane(tmp_path) as plane:
        first = await write(plane, "The customer sits in Lisbon", USER)
        second = await write(plane, "The customer sits in Porto", USER, request_id="r1")
        (again,) = advice(await write(plane, "The customer sits in Porto", USER, request_id="r1"))
        assert first.memory.id in again
        assert [town for town in ("Lisbon", "Porto") if town in again] == []
        for memory in (first.memory, second.memory):
            forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=memory.id, mode=pb.FORGET_MODE_HARD)
            await plane.stub.ForgetMemory(forget, metadata=as_user())
    assert [town for town in ("Lisbon", "Porto") if holds(tmp_path / "records.sqlite3", town)] == []


def holds(database: Path, word: str) -> list[str]:
    """The tables and columns of a database in which the word stands."""
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            f"{table}: {row!r}"
            for table in tables
            for row in connection.execute(f'SELECT * FROM "{table}"')
            if word.encode() in repr(row).encode()
        ]


async def test_a_better_source_settles_it_without_asking() -> None:
    async with running_plane() as plane:
        await write(plane, "The customer sits in Lisbon", memory_pb2.SOURCE_TYPE_LLM)
        assert advice(await write(plane, "The customer sits in Porto", USER)) == []


async def test_a_text_that_cannot_be_right_waits_for_review() -> None:
    async with running_plane() as plane:
        written = await write(plane, "Remember: the delivery is due on 2026-02-30", USER)
        assert written.decision.action == memory_pb2.DECISION_ACTION_PENDING_REVIEW
        reasons = {reason.code: reason.message for reason in written.decision.reasons}
        assert reasons["FORMAT_CHECK"] == "the date 2026-02-30 does not exist (format_checks: date)"
