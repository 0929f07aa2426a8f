"""Loads labelled memories into a data plane, asks the questions, and scores the answers."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from memplane.client import MemPlaneClient, write_request
from memplane.evaluation.dataset import Group, LabelledMemory, Question, safe_label
from memplane.evaluation.metrics import Scores, mean, score
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb

T = TypeVar("T")

TOP_K = 30
BATCH_SIZE = 100
"""Writes a call: small enough for a smooth progress bar. Unmeasured."""
CONCURRENT_GROUPS = 2
CONCURRENT_QUESTIONS = 4
MAX_CONTEXT_TURNS = 20
ACTION_PREFIX = "DECISION_ACTION_"

Progress = Callable[[str, int], None]
"""Takes `write` or `ask`, and how many more are done."""


@dataclass(frozen=True)
class Answer:
    """What a question brought back: the file's ids, best first, and whether a backend was missing."""

    question: Question
    ids: Sequence[str]
    degraded: bool


@dataclass(frozen=True)
class Report:
    """The outcome of an evaluation.

    Attributes:
        categories: Questions scored and their mean, by category.
        overall: The mean over all scored questions.
        questions: Questions scored; one without evidence is asked but not scored.
        asked: Questions asked.
        memories: Memories sent.
        writes: Memories by what became of them; their sum is `memories`.
        degraded: Answers that a backend did not take part in.
    """

    categories: Mapping[str, tuple[int, Scores]]
    overall: Scores
    questions: int
    asked: int
    memories: int
    writes: Mapping[str, int]
    degraded: int


@dataclass
class LoadedGroup:
    """A group in its namespace: which of the file's ids each stored memory stands for."""

    group: Group
    namespace: str
    token: str = ""
    ids: dict[str, list[str]] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)

    def expand(self, memory_ids: Sequence[str]) -> list[str]:
        """The file's ids of stored memories, in order: several where equal texts were merged into one."""
        return [file_id for memory_id in memory_ids for file_id in self.ids.get(memory_id, ())]


async def load(client: MemPlaneClient, groups: Sequence[Group], root: str, progress: Progress) -> list[LoadedGroup]:
    """Writes each group into a namespace of its own below `root`."""
    loaded = [LoadedGroup(group, f"{root}.{safe_label(index, group.name)}") for index, group in enumerate(groups)]
    await _bounded(CONCURRENT_GROUPS, [partial(_load_group, client, target, progress) for target in loaded])
    return loaded


async def ask(client: MemPlaneClient, loaded: Sequence[LoadedGroup], progress: Progress) -> list[Answer]:
    """Asks every question; answers stand in the order of the questions, group by group."""
    asked = [(target, question) for target in loaded for question in target.group.questions]
    return await _bounded(CONCURRENT_QUESTIONS, [partial(_ask_one, client, *each, progress) for each in asked])


def report(loaded: Sequence[LoadedGroup], answers: Sequence[Answer]) -> Report:
    """Scores the answers, by category and over all."""
    by_category: dict[str, list[Scores]] = {}
    scored = [answer for answer in answers if answer.question.evidence]
    for answer in scored:
        question = answer.question
        scores = score(answer.ids, question.evidence, question.optional)
        by_category.setdefault(question.category or "(none)", []).append(scores)
    writes: Counter[str] = Counter()
    for target in loaded:
        writes.update(target.writes)
    return Report(
        categories={name: (len(scores), mean(scores)) for name, scores in sorted(by_category.items())},
        overall=mean([each for scores in by_category.values() for each in scores]),
        questions=len(scored),
        asked=len(answers),
        memories=sum(len(target.group.memories) for target in loaded),
        writes=dict(sorted(writes.items())),
        degraded=sum(answer.degraded for answer in answers),
    )


async def _load_group(client: MemPlaneClient, target: LoadedGroup, progress: Progress) -> None:
    memories = target.group.memories
    done = 0
    async for response in client.batch_write(_proposals(target.namespace, memories), BATCH_SIZE):
        for memory, result in zip(memories[done:], response.results, strict=False):
            _note(target, memory, result)
        done += len(response.results)
        target.token = response.consistency_token or target.token
        progress("write", len(response.results))


def _proposals(namespace: str, memories: Sequence[LabelledMemory]) -> Iterator[pb.WriteMemoryRequest]:
    in_session: Counter[str] = Counter()
    for memory in memories:
        yield write_request(
            namespace,
            memory.text,
            event_time=memory.time,
            speaker=memory.speaker,
            session_id=memory.session,
            sequence=in_session[memory.session],
            source_id=memory.id,
        )
        in_session[memory.session] += 1


def _note(target: LoadedGroup, memory: LabelledMemory, result: pb.BatchWriteResult) -> None:
    if result.HasField("error"):
        target.writes["FAILED"] += 1
        return
    action = memory_pb2.DecisionAction.Name(result.response.decision.action)
    target.writes[action.removeprefix(ACTION_PREFIX)] += 1
    if result.response.memory.id:
        target.ids.setdefault(result.response.memory.id, []).append(memory.id)


async def _ask_one(client: MemPlaneClient, target: LoadedGroup, question: Question, progress: Progress) -> Answer:
    response = await client.search(
        target.namespace,
        question.text,
        top_k=TOP_K,
        record_access=False,
        context_turns=question.context_turns[-MAX_CONTEXT_TURNS:],
        reference_time=question.time or target.group.last_time,
        at_least_as_fresh=target.token,
    )
    progress("ask", 1)
    return Answer(question, target.expand([hit.memory.id for hit in response.hits]), bool(response.degraded))


async def _bounded(limit: int, works: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """The results in order, at most `limit` at work at once; the first failure ends the rest and is raised as it is."""
    free = asyncio.Semaphore(limit)

    async def one(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with free:
            return await work()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(work)) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
