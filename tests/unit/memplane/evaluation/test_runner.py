from datetime import UTC, datetime

import pytest

from memplane.client import MemPlaneClient, RpcError
from memplane.errors import InvalidField
from memplane.evaluation.dataset import Group, LabelledMemory, Question
from memplane.evaluation.runner import ask, load, report
from memplane.rpc.errors import status_of
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.memplane.client.fakes import MemoryRecorder, served

NOON = datetime(2023, 5, 8, 12, tzinfo=UTC)


def labelled(index: int, text: str) -> LabelledMemory:
    return LabelledMemory("g", str(index), text, NOON, "s", "Mel")


def asked(*evidence: str, turns: int = 0) -> Question:
    return Question("g", "q", "who?", ["turn"] * turns, "cat", [[each] for each in evidence], [], None)


def group(*questions: Question) -> Group:
    texts = ("tea", "tea", "refused", "broken")
    return Group("Conv 26", [labelled(index, text) for index, text in enumerate(texts)], list(questions))


def decide(request: pb.WriteMemoryRequest) -> pb.BatchWriteResult:
    if request.content == "broken":
        return pb.BatchWriteResult(error=status_of(InvalidField.one("content", "is broken")))
    action = memory_pb2.DECISION_ACTION_REJECTED if request.content == "refused" else memory_pb2.DECISION_ACTION_MERGED
    memory = None if request.content == "refused" else memory_pb2.Memory(id=f"mem_{request.content}")
    return pb.BatchWriteResult(
        response=pb.WriteMemoryResponse(decision=memory_pb2.Decision(action=action), memory=memory)
    )


def plane() -> MemoryRecorder:
    return MemoryRecorder(
        BatchWriteMemories=lambda request: pb.BatchWriteMemoriesResponse(
            results=[decide(each) for each in request.requests], consistency_token="t1"
        ),
        SearchMemories=lambda _: pb.SearchMemoriesResponse(
            hits=[memory_pb2.Hit(memory=memory_pb2.Memory(id=name)) for name in ("mem_other", "mem_tea")]
        ),
    )


def ignore(_what: str, _count: int) -> None:
    """No progress bar."""


async def test_every_item_is_accounted_for_and_merged_ids_are_expanded():
    recorder = plane()
    async with served(recorder) as target, MemPlaneClient(target) as client:
        loaded = await load(client, [group(asked("1", turns=25))], "eval.r1", ignore)
        answers = await ask(client, loaded, ignore)
    result = report(loaded, answers)
    assert result.writes == {"FAILED": 1, "MERGED": 2, "REJECTED": 1}
    assert sum(result.writes.values()) == result.memories == 4
    assert answers[0].ids == ["0", "1"]
    assert result.overall.mrr == 0.5
    assert result.categories["cat"][0] == 1


async def test_what_is_sent_is_what_the_format_says():
    recorder = plane()
    async with served(recorder) as target, MemPlaneClient(target) as client:
        await ask(client, await load(client, [group(asked("1", turns=25))], "eval.r1", ignore), ignore)
    batch, search = recorder.requests
    first = batch.requests[0]
    assert (first.namespace, first.speaker, first.session_id) == ("eval.r1.g0-conv-26", "Mel", "s")
    assert [each.sequence for each in batch.requests] == [0, 1, 2, 3]
    assert first.event_time.ToDatetime(tzinfo=UTC) == NOON
    assert (search.top_k, search.record_access, search.at_least_as_fresh) == (30, False, "t1")
    assert search.reference_time.ToDatetime(tzinfo=UTC) == NOON
    assert len(search.context_turns) == 20


async def test_a_question_without_evidence_is_asked_and_not_scored():
    async with served(plane()) as target, MemPlaneClient(target) as client:
        loaded = await load(client, [group(asked("0"), asked())], "eval.r1", ignore)
        answers = await ask(client, loaded, ignore)
    result = report(loaded, answers)
    assert (result.asked, result.questions, result.overall.recall_at_5) == (2, 1, 1.0)
    assert [answer.ids for answer in answers] == [["0", "1"], ["0", "1"]]


async def test_a_failed_call_ends_the_run_as_it_is():
    recorder = plane()
    recorder.behaviours["SearchMemories"] = lambda _: (_ for _ in ()).throw(InvalidField.one("query", "is blank"))
    async with served(recorder) as target, MemPlaneClient(target) as client:
        loaded = await load(client, [group(asked("1"), asked("0"))], "eval.r1", ignore)
        with pytest.raises(RpcError, match="is blank"):
            await ask(client, loaded, ignore)
