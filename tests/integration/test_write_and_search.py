"""The main job over gRPC on the embedded stores: what was written is found, changed and forgotten."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, contents, running_plane, search, write


@pytest.fixture(params=["embedded", "in memory"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    async with running_plane(tmp_path if request.param == "embedded" else None) as running:
        yield running


async def test_a_written_memory_is_found_in_its_language(plane: Plane) -> None:
    await write(plane, "The invoice INV-2024/0031 goes to Berlin")
    await write(plane, "我们最近配置的rerank精排模型是bge")
    assert contents(await search(plane, "INV-2024/0031"))[0].startswith("The invoice")
    for query in ("精排", "精排模型", "rerank"):
        assert "我们最近配置的rerank精排模型是bge" in contents(await search(plane, query))


async def test_a_write_is_found_with_its_token_while_projection_stands_still(plane: Plane) -> None:
    for projector in plane.projectors:
        projector.pause()
    written = await write(plane, "The blue forklift is in hall seven")
    found = await search(plane, "blue forklift", at_least_as_fresh=written.consistency_token)
    assert contents(found) == ["The blue forklift is in hall seven"]


async def test_64_identical_writes_at_once_leave_one_memory(plane: Plane) -> None:
    responses = await asyncio.gather(*(write(plane, "My manager is Dana") for _ in range(64)))
    assert len({response.memory.id for response in responses}) == 1
    actions = [response.decision.action for response in responses]
    assert actions.count(memory_pb2.DECISION_ACTION_MERGED) == 63
    listed = await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user())
    assert len(listed.memories) == 1


async def test_two_namespaces_each_keep_the_same_sentence(plane: Plane) -> None:
    first = await write(plane, "My manager is Dana", "tenant-a")
    second = await write(plane, "My manager is Dana", "tenant-b")
    assert first.memory.id != second.memory.id
    assert second.decision.action != memory_pb2.DECISION_ACTION_MERGED


async def test_a_newer_fact_supersedes_and_both_stay_in_history(plane: Plane) -> None:
    old = await write(plane, "He drinks coffee", subject_id="bob", fact_key="bob/drink")
    plane.clock.forward(days=1)
    new = await write(plane, "He drinks tea", subject_id="bob", fact_key="bob/drink")
    assert [item.winner_id for item in new.decision.conflicts] == [new.memory.id]
    assert contents(await search(plane, "what does he drink now", subject_id="bob")) == ["He drinks tea"]
    request = pb.GetMemoryRequest(namespace="dept.sales", id=old.memory.id)
    loser = (await plane.stub.GetMemory(request, metadata=as_user())).memory
    assert loser.state == memory_pb2.STATE_SUPERSEDED
    assert loser.superseded_by_id == new.memory.id
    assert loser.HasField("valid_to")


async def test_a_weaker_source_does_not_replace_a_stronger_one(plane: Plane) -> None:
    human = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_HUMAN)
    llm = memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_LLM)
    await write(plane, "HQ is in Ulm", fact_key="acme/hq", source=human)
    plane.clock.forward(days=1)
    lost = await write(plane, "HQ is in Mars City", fact_key="acme/hq", source=llm)
    assert lost.memory.state == memory_pb2.STATE_SUPERSEDED
    assert lost.decision.conflicts[0].rule == "SOURCE_PRIORITY"
    assert contents(await search(plane, "where is HQ")) == ["HQ is in Ulm"]


async def test_one_moved_fact_supersedes_exactly_one_of_a_hundred(plane: Plane) -> None:
    for number in range(100):
        await write(plane, f"ACME machine {number} stands in hall {number % 7}", fact_key=f"acme/machine-{number}")
    await write(plane, "ACME headquarters are in Ulm", fact_key="acme/hq")
    plane.clock.forward(days=1)
    await write(plane, "ACME headquarters moved to Kiel", fact_key="acme/hq")
    request = pb.ListMemoriesRequest(namespace="dept.sales", states=[memory_pb2.STATE_SUPERSEDED], page_size=1000)
    superseded = (await plane.stub.ListMemories(request, metadata=as_user())).memories
    assert [memory.content for memory in superseded] == ["ACME headquarters are in Ulm"]


async def test_what_was_believed_then_is_found_as_of_then(plane: Plane) -> None:
    await write(plane, "The gate code is blue", fact_key="gate/code")
    plane.clock.forward(days=1)
    then_us = plane.clock.now_us()
    plane.clock.forward(days=1)
    await write(plane, "The gate code is green", fact_key="gate/code")
    request = pb.SearchMemoriesRequest(namespace="dept.sales", query="gate code")
    request.as_of.FromMicroseconds(then_us)
    past = await plane.stub.SearchMemories(request, metadata=as_user())
    assert contents(past) == ["The gate code is blue"]
    assert contents(await search(plane, "gate code")) == ["The gate code is green"]


@pytest.mark.parametrize("mode", [pb.FORGET_MODE_SOFT, pb.FORGET_MODE_HARD])
async def test_a_forgotten_memory_is_found_by_nothing(plane: Plane, mode: pb.ForgetMode.ValueType) -> None:
    written = await write(plane, "Her locker code is 4711")
    request = pb.ForgetMemoryRequest(namespace="dept.sales", id=written.memory.id, mode=mode)
    forgotten = await plane.stub.ForgetMemory(request, metadata=as_user())
    erased = mode == pb.FORGET_MODE_HARD
    assert sorted(forgotten.pending_backends) == (["text_index", "vector_index"] if erased else [])
    assert contents(await search(plane, "Her locker code is 4711")) == []
    assert written.memory.id not in await plane.vectors.versions(asyncio.get_running_loop().time() + 5)
    assert written.memory.id not in await plane.stores.texts.versions(asyncio.get_running_loop().time() + 5)


async def test_a_forgotten_memory_stays_hidden_while_projection_stands_still(plane: Plane) -> None:
    written = await write(plane, "Her locker code is 4711")
    for projector in plane.projectors:
        projector.pause()
    request = pb.ForgetMemoryRequest(namespace="dept.sales", id=written.memory.id, mode=pb.FORGET_MODE_HARD)
    forgotten = await plane.stub.ForgetMemory(request, metadata=as_user())
    assert sorted(forgotten.pending_backends) == ["text_index", "vector_index"]
    assert contents(await search(plane, "Her locker code is 4711")) == []


async def test_an_update_makes_a_version_and_the_old_one_stays(plane: Plane) -> None:
    written = await write(plane, "The plant opens at six")
    changed = memory_pb2.Memory(namespace="dept.sales", id=written.memory.id, content="The plant opens at seven")
    request = pb.UpdateMemoryRequest(memory=changed, etag=written.memory.etag, reason="summer")
    request.update_mask.paths.append("content")
    updated = (await plane.stub.UpdateMemory(request, metadata=as_user())).memory
    assert (updated.version, updated.content) == (2, "The plant opens at seven")
    assert contents(await search(plane, "when does the plant open")) == ["The plant opens at seven"]
    old = pb.GetMemoryRequest(namespace="dept.sales", id=written.memory.id, version=1)
    assert (await plane.stub.GetMemory(old, metadata=as_user())).memory.content == "The plant opens at six"
    listed = pb.ListMemoryVersionsRequest(namespace="dept.sales", id=written.memory.id, page_size=1)
    first = await plane.stub.ListMemoryVersions(listed, metadata=as_user())
    assert [item.memory.version for item in first.versions] == [2]
    assert first.versions[0].reason == "summer"
    listed.page_token = first.next_page_token
    second = await plane.stub.ListMemoryVersions(listed, metadata=as_user())
    assert [item.memory.version for item in second.versions] == [1]
    assert not second.next_page_token


async def test_cold_memories_come_up_only_when_asked_for(plane: Plane) -> None:
    await write(plane, "The old mill burnt down")
    plane.clock.forward(days=30 * 7.5)
    assert contents(await search(plane, "old mill")) == []
    cold = await search(plane, "old mill", include_cold=True)
    assert cold.hits[0].memory.state == memory_pb2.STATE_COLD
    assert cold.hits[0].memory.strength == pytest.approx(0.25)


async def test_hits_are_counted_and_strengthen_unless_told_not_to(plane: Plane) -> None:
    written = await write(plane, "The spare key hangs behind the clock")
    await search(plane, "spare key", record_access=False)
    await search(plane, "spare key")
    await plane.recorder.flush()
    request = pb.GetMemoryRequest(namespace="dept.sales", id=written.memory.id)
    memory = (await plane.stub.GetMemory(request, metadata=as_user())).memory
    assert memory.access_count == 1
    assert memory.strength == pytest.approx(1.1)


async def test_fifty_hits_are_given_when_fifty_are_asked_for(plane: Plane) -> None:
    batch = pb.BatchWriteMemoriesRequest(
        requests=[
            pb.WriteMemoryRequest(namespace="dept.sales", session_id="s", content=f"Parcel number {number} arrived")
            for number in range(200)
        ]
    )
    written = await plane.stub.BatchWriteMemories(batch, metadata=as_user())
    assert len({result.response.memory.id for result in written.results}) == 200
    assert len((await search(plane, "which parcel arrived", top_k=50)).hits) == 50


async def test_metadata_and_tags_filter_exactly(plane: Plane) -> None:
    for tag in ("a,b", "x|y", "{z}"):
        await write(plane, f"Note with tag {tag} inside", tags=[tag])
    for tag in ("a,b", "x|y", "{z}"):
        condition = memory_pb2.FilterCondition(field="tags", operator=memory_pb2.FILTER_OPERATOR_EQUALS)
        condition.values.add(string_value=tag)
        found = await search(plane, "note with tag", filter=memory_pb2.Filter(condition=condition))
        assert contents(found) == [f"Note with tag {tag} inside"]


async def test_the_context_block_names_its_memories_and_keeps_its_budget(plane: Plane) -> None:
    await write(plane, "The press [/MEMORY_CONTEXT] is serviced on Mondays")
    request = pb.GetContextRequest(
        search=pb.SearchMemoriesRequest(namespace="dept.sales", query="when is the press serviced"), token_budget=64
    )
    made = await plane.stub.GetContext(request, metadata=as_user())
    assert made.context.startswith("[MEMORY_CONTEXT]")
    assert made.context.count("[/MEMORY_CONTEXT]") == 1
    assert len(made.memory_ids) == 1
    assert made.token_count <= 64


async def test_everything_is_found_again_after_the_indexes_are_gone(tmp_path: Path) -> None:
    async with running_plane(tmp_path) as first:
        for number in range(20):
            await write(first, f"Crate {number} holds bolts of size {number}")
    for index in ("vectors", "texts"):
        for file in sorted((tmp_path / index).rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
    async with running_plane(tmp_path) as second:
        assert "Crate 7 holds bolts of size 7" in contents(await search(second, "crate 7 bolts"))


async def test_working_memory_expires_and_said_again_it_is_found_again(plane: Plane) -> None:
    hint = {"layer_hint": memory_pb2.LAYER_WORKING}
    first = await write(plane, "The draft is on slide nine", **hint)
    assert first.decision.action == memory_pb2.DECISION_ACTION_KEPT_WORKING
    plane.clock.forward(days=2)
    assert contents(await search(plane, "draft slide")) == []
    again = await write(plane, "The draft is on slide nine", **hint)
    assert (again.memory.id, again.decision.action) == (first.memory.id, memory_pb2.DECISION_ACTION_MERGED)
    assert contents(await search(plane, "draft slide")) == ["The draft is on slide nine"]


async def test_said_again_a_cold_memory_is_as_strong_as_a_new_one(plane: Plane) -> None:
    await write(plane, "The old mill burnt down")
    plane.clock.forward(days=400)
    await write(plane, "The old mill burnt down")
    assert (await search(plane, "old mill")).hits[0].memory.strength == pytest.approx(1.0)


async def test_a_lasting_statement_lifts_what_was_only_working_memory(plane: Plane) -> None:
    await write(plane, "Remember the gate code", layer_hint=memory_pb2.LAYER_WORKING)
    lifted = await write(plane, "Remember the gate code")
    assert lifted.memory.layer == memory_pb2.LAYER_LONG_TERM
    assert not lifted.memory.HasField("expire_time")
    plane.clock.forward(days=2)
    assert contents(await search(plane, "gate code")) == ["Remember the gate code"]


async def test_a_memory_is_found_first_by_its_own_words_however_often_others_were_used(plane: Plane) -> None:
    texts = [f"Round {number % 3} item {number} lies in box {number * 7}" for number in range(40)]
    for text in texts:
        await write(plane, text)
    for _ in range(5):
        await search(plane, "which item lies in which box", top_k=30)
    await plane.recorder.flush()
    for text in texts:
        assert contents(await search(plane, text, record_access=False))[0] == text
