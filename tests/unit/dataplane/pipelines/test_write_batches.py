"""How a batch goes to the stores: in chunks, each read for and committed at once, and what fails of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.changes import Commit
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from dataplane.model import Draft, Vector
from dataplane.pipelines.settle import Settled
from dataplane.ports import CommitResult
from memplane.errors import InvalidField, PermissionDenied, RequestIdReused, Unavailable
from tests.unit.dataplane.pipelines.queue_rig import FlakyStore, Rig, in_time, memory_rig, rig_over

RNG = np.random.default_rng(7)


class Counting(FlakyStore):
    """Counts what it is asked; `lost_commits` of several fail."""

    lost_commits = 0
    lost_single_commits = 0

    def __init__(self) -> None:
        super().__init__(fields_of)
        self.commits: list[int] = []
        self.asked: list[int] = []

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        if self.lost_commits and len(commits) > 1:
            self.lost_commits -= 1
            raise BackendUnavailable("record_store", "down")
        if self.lost_single_commits and len(commits) == 1:
            self.lost_single_commits -= 1
            raise BackendUnavailable("record_store", "down")
        self.commits.append(len(commits))
        return await super().commit(commits, deadline_s)

    async def find_requests(self, *arguments: Any) -> Any:
        self.asked.append(len(arguments[2]))
        return await super().find_requests(*arguments)


@pytest.fixture
def store() -> Counting:
    return Counting()


@pytest.fixture
def rig(store: Counting) -> Rig:
    return rig_over(memory_rig().queue, store)


def draft(content: str, **fields: Any) -> Draft:
    return Draft(**{"namespace": "dept.sales", "content": content, "embedding": vector(), **fields})


def vector() -> Vector:
    drawn = RNG.standard_normal(384).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


async def written(rig: Rig, *drafts: Draft) -> list[Any]:
    return list(await rig.write.write_batch(drafts, rig.caller(), in_time()))


async def test_drafts_with_embeddings_are_committed_by_the_hundred(rig: Rig, store: Counting) -> None:
    outcomes = await written(rig, *(draft(f"thing {number}", request_id=f"r{number}") for number in range(300)))
    assert all(isinstance(outcome, Settled) for outcome in outcomes)
    assert [outcome.response.memory.content for outcome in outcomes] == [f"thing {number}" for number in range(300)]
    assert (store.commits, store.asked) == ([128, 128, 44], [128, 128, 44])


async def test_texts_are_embedded_in_smaller_chunks(rig: Rig, store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[int] = []
    embed = HashEmbedder.embed_passages

    async def counted(self: HashEmbedder, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        embedded.append(len(texts))
        return await embed(self, texts, deadline_s)

    monkeypatch.setattr(HashEmbedder, "embed_passages", counted)
    given = [draft(f"given {number}") for number in range(10)]
    await written(rig, *given, *(draft(f"text {number}", embedding=None) for number in range(40)))
    assert (embedded, store.commits) == ([32, 8], [42, 8])


async def test_what_depends_on_an_earlier_draft_is_committed_after_the_others(rig: Rig, store: Counting) -> None:
    drafts = [draft("one"), draft("one"), draft("two", fact_key="f"), draft("three", fact_key="f"), draft("four")]
    outcomes = await written(rig, *drafts)
    assert store.commits == [3, 1, 1]
    assert outcomes[0].response.memory.id == outcomes[1].response.memory.id
    assert outcomes[3].response.decision.conflicts[0].memory_id == outcomes[2].response.memory.id


async def test_what_the_store_holds_already_does_not_hinder_the_others(rig: Rig, store: Counting) -> None:
    [first] = await written(rig, draft("one", fact_key="f"))
    store.commits.clear()
    outcomes = await written(rig, draft("two"), draft("one"), draft("other", fact_key="f"), draft("three"))
    assert store.commits == [3, 1, 1]
    assert outcomes[1].response.memory.id == first.response.memory.id


async def test_a_store_that_fails_for_a_chunk_is_told_of_each_of_its_drafts(rig: Rig, store: Counting) -> None:
    store.lost_commits = 1
    drafts = [draft(f"thing {number}", request_id=f"r{number}", subject_id=str(number)) for number in range(130)]
    outcomes = await written(rig, *drafts)
    assert [isinstance(outcome, Unavailable) for outcome in outcomes] == [True] * 128 + [False] * 2
    again = await written(rig, *drafts)
    assert all(isinstance(outcome, Settled) for outcome in again)
    assert again[129].response == outcomes[129].response


async def test_what_is_said_of_a_subject_after_a_draft_that_failed_is_not_stored_before_it(
    rig: Rig, store: Counting
) -> None:
    store.lost_commits = 1
    subjects = ["a"] * 128 + ["a", "b", "a"]
    drafts = [draft(f"thing {number}", subject_id=subject) for number, subject in enumerate(subjects)]
    outcomes = await written(rig, *drafts, draft("a trial", subject_id="a", validate_only=True))
    assert [isinstance(outcome, Unavailable) for outcome in outcomes] == [True] * 129 + [False, True, False]
    assert await rig.contents() == ["thing 129"]


async def test_within_a_chunk_the_order_is_kept_as_well(rig: Rig, store: Counting) -> None:
    same = {"fact_key": "acme:city", "subject_id": "a"}
    store.lost_single_commits = 1
    outcomes = await written(rig, draft("Rome", **same), draft("Oslo", **same), draft("Bern", **same), draft("Riga"))
    put_off = [isinstance(outcome, Unavailable) for outcome in outcomes]
    assert put_off in ([False, True, True, False], [True, True, True, False])


async def test_each_draft_of_a_store_that_is_down_fails_by_itself(rig: Rig, store: Counting) -> None:
    store.is_down = True
    drafts = [draft("one", request_id="r1"), draft("two"), draft("two"), draft("three", namespace="elsewhere")]
    outcomes = await written(rig, *drafts)
    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable, Unavailable, PermissionDenied]


async def test_drafts_that_fail_keep_their_place(rig: Rig) -> None:
    await written(rig, draft("zero", request_id="r0", payload_hash="a"))
    bad = InvalidField.one("content", "is bad")
    drafts: list[Any] = [draft("one"), bad, draft("two", request_id="r0", payload_hash="b"), draft("three")]
    outcomes = await written(rig, *drafts)
    assert outcomes[1] is bad
    assert isinstance(outcomes[2], RequestIdReused)
    assert [outcomes[place].response.memory.content for place in (0, 3)] == ["one", "three"]
