"""Retrieving that is broken off before its parts have begun, and what it says of a restored record store."""

import asyncio
import gc
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.logic.intent import Intent
from dataplane.model import EVERYTHING, Scope
from dataplane.pipelines.lineage import Lineage
from dataplane.pipelines.query_embedding import QueryEmbeddings
from dataplane.pipelines.retrieve import Question, Retrieval, RetrieveParts, Wording
from dataplane.pipelines.spaces import VectorSpace
from dataplane.ports import Pending
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from tests.contract.builders import fields_of


def question() -> Question:
    embedder = HashEmbedder()
    return Question(
        space=VectorSpace(embedder, InMemoryVectorIndex(embedder.dimension), None),
        scope=Scope(("dept.sales",)),
        query="which pump K-12",
        text="which pump K-12",
        wordings=(Wording(("which pump K-12",), "which pump K-12"),),
        leans_on_turns=False,
        filter=EVERYTHING,
        intent=Intent(("k-12",)),
        top_k=5,
        policies=EffectivePolicies(PolicySet()).for_namespace("dept.sales"),
        access_since_us=0,
    )


class Uncached:
    async def get(self, _scope: Scope, keys: list[str], _deadline_s: float) -> list[None]:
        return [None for _ in keys]

    async def put(self, *_: object) -> None:
        return


def retrieval_over(**changes: object) -> Retrieval:
    embeddings = QueryEmbeddings(cast(Any, Uncached()))
    parts = SimpleNamespace(
        texts=InMemoryTextIndex(), query_embeddings=embeddings, observe_stage=lambda _stage, _seconds: None, **changes
    )
    return Retrieval(cast(RetrieveParts, parts))


@pytest.mark.parametrize("steps", range(6))
async def test_nothing_is_left_unawaited_when_the_caller_hangs_up(steps: int, recwarn: pytest.WarningsRecorder) -> None:
    retrieval = retrieval_over()
    deadline_s = asyncio.get_running_loop().time() + 5

    async def search() -> None:
        async with retrieval.asking(question(), deadline_s) as asked:
            await retrieval.propose(asked, frozenset(), deadline_s)

    searching = asyncio.create_task(search())
    for _ in range(steps):
        await asyncio.sleep(0)
    searching.cancel()
    await asyncio.gather(searching, return_exceptions=True)
    gc.collect()
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]


@pytest.mark.parametrize(("is_down", "said"), [(False, ["RECORD_STORE_RESTORED"]), (True, [])])
async def test_an_answer_is_of_a_restored_record_store_only_when_that_answered(is_down: bool, said: list[str]) -> None:
    lineage = Lineage()
    lineage.is_restored = True
    retrieval = retrieval_over(lineage=lineage, projectors=SimpleNamespace(unlevel=[], applied={}))
    store, deadline_s = InMemoryRecordStore(fields_of), asyncio.get_running_loop().time() + 5

    async def refuse(*_: object) -> Pending:
        raise BackendUnavailable("record_store", "down")

    if is_down:
        store.pending = refuse  # type: ignore[method-assign]  # for good
    async with retrieval.asking(question(), deadline_s) as asked:
        with suppress(BackendUnavailable):
            await retrieval.now(asked, store, deadline_s)
    assert [note.reason for note in asked.degraded.messages()] == said
