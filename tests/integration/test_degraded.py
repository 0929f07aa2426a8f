"""A part that is down: the answer says so, is made without it, and nothing is lost."""

from collections.abc import Sequence
from typing import Any

import grpc
import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from dataplane.logic.gate_model import Opinion
from dataplane.model import Scope, Vector
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually_async
from tests.integration.harness import Plane, as_user, contents, running_plane, search, write

SCOPE = Scope(("dept.sales",))


class Switch:
    """Turns a stand-in off and on."""

    def __init__(self) -> None:
        self.off = False

    def check(self, backend: str) -> None:
        if self.off:
            raise BackendUnavailable(backend, "switched off")


class FaultyEmbedder(HashEmbedder, Switch):
    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        self.check("embedder")
        return await super().embed_queries(texts, deadline_s)

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        self.check("embedder")
        return await super().embed_passages(texts, deadline_s)


class FaultyVectorIndex(InMemoryVectorIndex):
    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.switch = Switch()
        self.has_defect = False

    async def search(self, *arguments: Any) -> Any:
        self.switch.check("vector_index")
        return await super().search(*arguments)

    async def upsert(self, *arguments: Any) -> None:
        self.switch.check("vector_index")
        if self.has_defect:
            raise ValueError("a defect")
        await super().upsert(*arguments)


class FaultyTextIndex(InMemoryTextIndex):
    def __init__(self) -> None:
        super().__init__()
        self.switch = Switch()

    async def search(self, *arguments: Any) -> Any:
        self.switch.check("text_index")
        return await super().search(*arguments)


class FaultyRecordStore(InMemoryRecordStore):
    def __init__(self) -> None:
        super().__init__(fields_of)
        self.switch = Switch()

    async def commit(self, *arguments: Any) -> Any:
        self.switch.check("record_store")
        return await super().commit(*arguments)

    async def last_position(self, *arguments: Any) -> Any:
        self.switch.check("record_store")
        return await super().last_position(*arguments)


class OpinionatedModel:
    """A gate model that finds everything worth keeping."""

    def opinion(self, _embedding: Vector, _text: str) -> Opinion:
        return Opinion(0.95, {})


def degraded(response: pb.SearchMemoriesResponse) -> set[str]:
    return {note.backend for note in response.degraded}


async def test_without_the_vector_index_words_find_it_and_the_answer_says_so() -> None:
    vectors = FaultyVectorIndex(384)
    async with running_plane(vectors=vectors) as plane:
        await write(plane, "我们最近配置的rerank精排模型是bge")
        vectors.switch.off = True
        found = await search(plane, "精排模型")
        assert contents(found) == ["我们最近配置的rerank精排模型是bge"]
        assert degraded(found) == {"vector_index"}


async def test_without_the_text_index_meaning_finds_it_and_the_answer_says_so() -> None:
    texts = FaultyTextIndex()
    async with running_plane(texts=texts) as plane:
        await write(plane, "The ladder is behind the shed")
        texts.switch.off = True
        found = await search(plane, "ladder shed")
        assert contents(found) == ["The ladder is behind the shed"]
        assert degraded(found) == {"text_index"}


async def test_without_both_indexes_the_recent_ones_come_and_the_answer_says_so() -> None:
    vectors, texts = FaultyVectorIndex(384), FaultyTextIndex()
    async with running_plane(vectors=vectors, texts=texts) as plane:
        await write(plane, "The ladder is behind the shed")
        vectors.switch.off = texts.switch.off = True
        found = await search(plane, "ladder")
        assert contents(found) == ["The ladder is behind the shed"]
        assert degraded(found) == {"vector_index", "text_index"}


async def test_without_the_embedder_writes_are_kept_found_by_words_and_embedded_later() -> None:
    embedder = FaultyEmbedder()
    model: Any = OpinionatedModel()
    async with running_plane(embedder=embedder, gate_model=model) as plane:
        embedder.off = True
        written = await write(plane, "The spare fuse is in drawer three")
        assert [note.backend for note in written.degraded] == ["embedder"]
        assert written.memory.layer == memory_pb2.LAYER_SHORT_TERM
        assert [reason.code for reason in written.decision.reasons] == ["NOBODY_HAD_AN_OPINION"]
        found = await search(plane, "spare fuse")
        assert contents(found) == ["The spare fuse is in drawer three"]
        assert degraded(found) == {"embedder"}
        embedder.off = False
        plane.projectors.wake()
        memory = await eventually_async(
            lambda: read(plane, written.memory.id), lambda memory: memory.layer == memory_pb2.LAYER_LONG_TERM, 10
        )
        assert not memory.provenance.unscored
        assert contents(await search(plane, "spare fuse")) == ["The spare fuse is in drawer three"]


async def read(plane: Plane, memory_id: str) -> memory_pb2.Memory:
    request = pb.GetMemoryRequest(namespace="dept.sales", id=memory_id)
    return (await plane.stub.GetMemory(request, metadata=as_user())).memory


async def test_what_the_vector_index_missed_is_projected_when_it_is_back() -> None:
    vectors = FaultyVectorIndex(384)
    async with running_plane(vectors=vectors) as plane:
        vectors.switch.off = True
        written = await write(plane, "The ladder is behind the shed")
        vectors.switch.off = False

        async def indexed() -> dict[str, int]:
            return await vectors.versions(1e12)

        await eventually_async(indexed, lambda versions: written.memory.id in versions, 10)


async def test_without_the_record_store_and_a_queue_a_write_is_refused() -> None:
    records = FaultyRecordStore()
    async with running_plane(records=records) as plane:
        await write(plane, "The ladder is behind the shed")
        records.switch.off = True
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await write(plane, "The ladder is gone")
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        records.switch.off = False
        assert contents(await search(plane, "ladder")) == ["The ladder is behind the shed"]


async def test_a_defect_in_an_index_costs_an_attempt_and_the_memory_is_found_all_the_same() -> None:
    vectors = FaultyVectorIndex(384)
    async with running_plane(vectors=vectors) as plane:
        vectors.has_defect = True
        written = await write(plane, "The ladder is behind the shed")
        assert contents(await search(plane, "ladder")) == ["The ladder is behind the shed"]
        vectors.has_defect = False

        async def indexed() -> Any:
            await plane.stores.records.replay_dead_letters("vector_index:hash-384@node", [], 1e12)
            return await vectors.versions(1e12)

        await eventually_async(indexed, lambda versions: written.memory.id in versions, 10)


class LastingRecordStore(InMemoryRecordStore):
    """Outlives the plane that closes it."""

    async def close(self) -> None:
        pass


async def test_an_index_that_is_still_compared_at_start_is_named() -> None:
    vectors = FaultyVectorIndex(384)
    vectors.switch.off = True
    records = LastingRecordStore(fields_of)
    async with running_plane(records=records) as plane:
        await write(plane, "The ladder is behind the shed")
    async with running_plane(records=records, vectors=vectors, level_wait_s=0.05) as plane:
        found = await search(plane, "ladder")
        assert contents(found) == ["The ladder is behind the shed"]
        assert "vector_index" in degraded(found)
        vectors.switch.off = False

        async def whole() -> set[str]:
            return degraded(await search(plane, "ladder"))

        await eventually_async(whole, lambda notes: notes == set(), 10)


async def test_new_tags_keep_the_embedding_that_the_writer_gave() -> None:
    embedder = FaultyEmbedder()
    async with running_plane(embedder=embedder) as plane:
        given = [1.0] + [0.0] * 383
        written = (await write(plane, "The ladder is behind the shed", embedding=given)).memory
        embedder.off = True
        changed = memory_pb2.Memory(namespace="dept.sales", id=written.id, tags=["tools"])
        request = pb.UpdateMemoryRequest(memory=changed)
        request.update_mask.paths.append("tags")
        updated = await plane.stub.UpdateMemory(request, metadata=as_user())
        assert not updated.degraded
        rows = await plane.stores.records.fetch(SCOPE, [written.id], embedder.model, 0, 1e12)
        assert rows[0].embedding is not None
        assert rows[0].embedding.tolist() == given
