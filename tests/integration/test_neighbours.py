"""What stands beside an answer, who said it, and each part of a question. About 5 seconds."""

from collections.abc import Mapping
from typing import Any

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import KEEP_ALL, Plane, as_user, running_plane, search, write

QUESTION = "Which instrument does the violin teacher recommend?"
ASKED, REPLY = "Which instrument does your violin teacher recommend?", "The old one, of course"
FAR = "We went to the lake yesterday"


def policy(**retrieve: Any) -> Mapping[str, Any]:
    return {
        **KEEP_ALL,
        "retrieve_policy": {"query_cache_ttl_s": 0, "top_k": 2, "neighbours": {"use": "signal"}, **retrieve},
    }


async def tell_turns(plane: Plane, **fields: Any) -> None:
    """A question and its reply; between other turns, so that the reply is found by nothing of its own."""
    filler = [f"{FAR}, part {n}" for n in range(30)]
    for number, text in enumerate([*filler[:15], ASKED, REPLY, *filler[15:]]):
        await write(plane, text, session_id="s1", sequence=number, **fields)


async def contents(plane: Plane, query: str = QUESTION, **options: Any) -> list[str]:
    return [hit.memory.content for hit in (await search(plane, query, **options)).hits]


async def test_a_reply_is_found_by_the_turn_that_it_answers() -> None:
    async with running_plane(policy=policy()) as plane:
        await tell_turns(plane)
        found = (await search(plane, QUESTION, explain=True)).hits
    assert [hit.memory.content for hit in found] == [ASKED, REPLY]
    assert "beside turns that answer" in found[1].explanation


async def test_switched_off_a_reply_stands_alone() -> None:
    async with running_plane(policy=policy(neighbours={"use": "off"})) as plane:
        await tell_turns(plane)
        found = (await search(plane, QUESTION, explain=True)).hits
    assert all("beside" not in hit.explanation for hit in found)


async def test_a_neighbour_that_the_filter_excludes_neither_comes_nor_speaks() -> None:
    async with running_plane(policy=policy(odds={"asking": 1.0})) as plane:
        await write(plane, ASKED, session_id="s1", sequence=1, speaker="Ann")
        await write(plane, REPLY, session_id="s1", sequence=2, speaker="Bob")
        found = (await search(plane, QUESTION, filter=spoken_by("Bob"), explain=True)).hits
    assert [hit.memory.content for hit in found] == [REPLY]
    assert "beside" not in found[0].explanation


def spoken_by(name: str) -> memory_pb2.Filter:
    is_theirs = memory_pb2.FilterCondition(
        field="speaker",
        operator=memory_pb2.FILTER_OPERATOR_EQUALS,
        values=[memory_pb2.FilterValue(string_value=name)],
    )
    return memory_pb2.Filter(condition=is_theirs)


async def test_another_tenants_session_of_the_same_name_neither_comes_nor_speaks() -> None:
    async with running_plane(policy=policy()) as plane:
        await write(plane, REPLY, session_id="s1", sequence=2)
        await write(plane, ASKED, "dept.hr", session_id="s1", sequence=1)
        found = (await search(plane, QUESTION, explain=True)).hits
    assert [hit.memory.content for hit in found] == [REPLY]
    assert "beside" not in found[0].explanation


async def test_what_is_forgotten_speaks_for_nothing() -> None:
    async with running_plane(policy=policy()) as plane:
        asked = await write(plane, ASKED, session_id="s1", sequence=1)
        await write(plane, REPLY, session_id="s1", sequence=2)
        forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=asked.memory.id)
        await plane.stub.ForgetMemory(forget, metadata=as_user())
        found = (await search(plane, QUESTION, explain=True)).hits
    assert [hit.memory.content for hit in found] == [REPLY]
    assert "beside" not in found[0].explanation


async def test_what_the_one_says_who_is_asked_about_comes_first() -> None:
    async with running_plane(policy=policy()) as plane:
        for speaker in ("Bob", "Ann"):
            await write(plane, "I like the red bicycle most", session_id=f"s-{speaker}", speaker=speaker)
        found = {
            name: (await search(plane, f"Which bicycle does {name} like?", explain=True)).hits
            for name in ("Ann", "Bob")
        }
    assert {name: hits[0].memory.speaker for name, hits in found.items()} == {"Ann": "Ann", "Bob": "Bob"}
    assert "said by Ann, who is asked about (odds × 2)" in found["Ann"][0].explanation
    assert "asked about" not in found["Ann"][1].explanation


async def test_each_part_of_a_question_is_answered() -> None:
    lake, pump = "The boat lies at the northern shore of the lake", "The pump needs a new seal"
    async with running_plane(policy=policy()) as plane:
        for number in range(20):
            await write(plane, f"The boat at the shore of the lake has sail number {number}", session_id="")
        for text in (lake, pump):
            await write(plane, text, session_id="")
        query = "Where at the northern shore of the lake lies the boat? Also, what does the pump need?"
        assert set(await contents(plane, query)) == {lake, pump}


async def test_a_repeat_gives_way_to_what_is_new_where_the_policy_asks_for_it() -> None:
    repeats = [f"The pump needs a new seal in hall {number}" for number in (1, 2)]
    other = "The old pump leaks"
    async with running_plane(policy=policy(diversity=0.9)) as plane:
        for text in (*repeats, other):
            await write(plane, text, session_id="")
        found = await contents(plane, "What about the pump that needs a new seal?")
    assert found[1] == other
