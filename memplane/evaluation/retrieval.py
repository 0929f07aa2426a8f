"""The report of an evaluation of searches: figures by category and policy, differences, the worst questions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.comparable import TASKS
from memplane.evaluation.comparing import Answered, comparison, counted
from memplane.evaluation.dataset import Group, LabelledMemory, Question
from memplane.evaluation.metrics import recall, score, without_optional
from memplane.evaluation.report.model import WORST, Case, Item, Report, Table, Value
from memplane.evaluation.runner import Answer
from memplane.evaluation.runner import Report as Measured

COLUMNS = ("n", "recall@5", "recall@10", "recall@20", "hit@10", "NDCG@10", "MRR")
CHARTED = ("recall@5", "recall@10")
SEARCHES = TASKS["retrieval"]
LISTED = 10
"""Memories that are shown of the list that a bad question got."""


@dataclass(frozen=True)
class PolicyRun:
    """What was measured under one policy.

    Attributes:
        name: The policy's.
        measured: The figures.
        answers: One for each question, in the same order under each policy.
        seconds: What `load` and `ask` took.
    """

    name: str
    measured: Measured
    answers: Sequence[Answer]
    seconds: Mapping[str, float]


def retrieval_report(groups: Sequence[Group], runs: Sequence[PolicyRun], draw: Draw) -> Report:
    """The report of one run or more. The worst questions are those of the last; the others are compared with the first.

    With one run `data` is what it has always been; with more it holds `policies` and `comparisons` by name.
    """
    tables = [_by_category(run, len(runs) > 1) for run in runs]
    told = {run.name: as_json(run) for run in runs}
    about = {key: value for run in runs for key, value in _about(run, len(runs) > 1).items()}
    data: Mapping[str, Any] = told[runs[0].name]
    if len(runs) > 1:
        tables = [_by_policy(runs), *tables]
        differences = {run.name: _differences(runs[0], run, draw) for run in runs[1:]}
        tables += [table for each in differences.values() for table in each.tables]
        data = {"policies": told, "comparisons": {name: each.data for name, each in differences.items()}}
    return Report("Searches", about, tables, _worst(groups, runs[-1].answers), data)


def both_answered(first: Sequence[Answer], other: Sequence[Answer]) -> Answered:
    """What two runs answered to the same questions, of those that are scored. Raises BadDataset where none is."""
    questions = [answer.question for answer in first]
    a, b = ([{"ids": answer.ids} for answer in answers] for answers in (first, other))
    return counted(SEARCHES, Answered(questions, a, b, [question.group for question in questions]))


def as_json(run: PolicyRun) -> dict[str, object]:
    """The figures of a run as one JSON value."""
    result = run.measured
    return {
        "overall": {"n": result.questions, **asdict(result.overall)},
        "categories": {name: {"n": n, **asdict(scores)} for name, (n, scores) in result.categories.items()},
        "asked": result.asked,
        "memories": result.memories,
        "writes": dict(result.writes),
        "degraded": result.degraded,
        "seconds": {name: round(value, 2) for name, value in run.seconds.items()},
    }


def _by_category(run: PolicyRun, is_named: bool) -> Table:
    result = run.measured
    rows: list[tuple[Value, ...]] = [
        (name, n, *asdict(scores).values()) for name, (n, scores) in result.categories.items()
    ]
    rows.append(("all", result.questions, *asdict(result.overall).values()))
    title = f"By category, policy {run.name}" if is_named else "By category"
    return Table(title, ("category", *COLUMNS), rows, CHARTED)


def _by_policy(runs: Sequence[PolicyRun]) -> Table:
    rows = [(run.name, run.measured.questions, *asdict(run.measured.overall).values()) for run in runs]
    return Table("By policy", ("policy", *COLUMNS), rows, CHARTED)


def _about(run: PolicyRun, is_named: bool) -> dict[str, Value]:
    result, of = run.measured, f"policy {run.name}: " if is_named else ""
    outcomes = ", ".join(f"{count} {action}" for action, count in result.writes.items())
    told: dict[str, Value] = {
        f"{of}memories": f"{result.memories}: {outcomes}",
        f"{of}seconds": ", ".join(f"{name} {value:.1f}" for name, value in run.seconds.items()),
    }
    if result.asked > result.questions:
        told[f"{of}questions without evidence, not scored"] = result.asked - result.questions
    if result.degraded:
        told[f"{of}degraded answers"] = result.degraded
    return told


def _differences(first: PolicyRun, other: PolicyRun, draw: Draw) -> Report:
    return comparison(SEARCHES, both_answered(first.answers, other.answers), draw, (first.name, other.name))


def _worst(groups: Sequence[Group], answers: Sequence[Answer]) -> list[Case]:
    """The questions with the lowest recall among ten; of equal ones those whose first hit comes latest."""
    texts = {(group.name, memory.id): memory for group in groups for memory in group.memories}
    scored = [answer for answer in answers if answer.question.evidence]

    def badness(answer: Answer) -> tuple[float, float]:
        found = score(answer.ids, answer.question.evidence, answer.question.optional)
        return found.recall_at_10, found.mrr

    worst = [answer for answer in sorted(scored, key=badness) if badness(answer)[0] < 1]
    return [_case(answer, texts) for answer in worst[:WORST]]


def _case(answer: Answer, memories: Mapping[tuple[str, str], LabelledMemory]) -> Case:
    question = answer.question
    kept = without_optional(answer.ids, question.evidence, question.optional)
    places = {memory_id: place for place, memory_id in reversed(list(enumerate(kept, start=1)))}
    wanted = {memory_id for piece in question.evidence for memory_id in piece}
    return Case(
        " / ".join([*question.context_turns[-2:], question.text]),
        {
            "id": question.id,
            "group": question.group,
            "category": question.category or None,
            "recall@10": recall(kept, question.evidence, LISTED),
        },
        expected=[_wanted(question, piece, places, memories) for piece in question.evidence],
        got=[_item(question, each, each in wanted, memories) for each in kept[:LISTED]],
    )


def _wanted(
    question: Question,
    piece: Sequence[str],
    places: Mapping[str, int],
    memories: Mapping[tuple[str, str], LabelledMemory],
) -> Item:
    """The first id that states a piece, and at which place of the list the piece was found."""
    place = min((places[each] for each in piece if each in places), default=None)
    found = _item(question, piece[0], place is not None and place <= LISTED, memories)
    return Item(found.text, found.right, f"{found.note}; {'not found' if place is None else f'at place {place}'}")


def _item(
    question: Question, memory_id: str, is_right: bool, memories: Mapping[tuple[str, str], LabelledMemory]
) -> Item:
    memory = memories.get((question.group, memory_id))
    if memory is None:
        return Item("(not among the memories)", is_right, memory_id)
    told = (memory_id, memory.speaker, memory.time.date().isoformat() if memory.time else "")
    return Item(memory.text, is_right, ", ".join(each for each in told if each))
