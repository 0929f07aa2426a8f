"""Reads the files of an evaluation: memories and questions, one JSON object a line."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAX_LABEL_CHARS = 63


class BadDataset(Exception):
    """A file is not of the format; the text names file, line and what is wrong."""


@dataclass(frozen=True)
class LabelledMemory:
    """A line of the memories file. `time` is UTC where the file names no offset; None: unknown."""

    group: str
    id: str
    text: str
    time: datetime | None
    session: str
    speaker: str


@dataclass(frozen=True)
class Question:
    """A line of the questions file. `evidence` holds pieces, each stated by any of its ids; none: it is not scored."""

    group: str
    id: str
    text: str
    context_turns: Sequence[str]
    category: str
    evidence: Sequence[Sequence[str]]
    optional: Sequence[str]
    time: datetime | None


@dataclass(frozen=True)
class Group:
    """One store: its memories in the order of the file, and what is asked of it."""

    name: str
    memories: Sequence[LabelledMemory]
    questions: Sequence[Question]

    @property
    def last_time(self) -> datetime | None:
        """The latest time of its memories; None when none has one."""
        return max((memory.time for memory in self.memories if memory.time is not None), default=None)


def read_groups(memories: Path, questions: Path) -> list[Group]:
    """The groups in the order in which the memories file names them.

    Raises:
        BadDataset: A line is not of the format, an id stands twice, or a question asks a group that has no memories.
    """
    by_group: dict[str, list[LabelledMemory]] = {}
    seen: set[tuple[str, str]] = set()
    for place, row in json_rows(memories):
        memory = _memory(place, row)
        if (memory.group, memory.id) in seen:
            raise BadDataset(f"{place}: id {memory.id!r} stands twice in group {memory.group!r}")
        seen.add((memory.group, memory.id))
        by_group.setdefault(memory.group, []).append(memory)
    asked: dict[str, list[Question]] = {name: [] for name in by_group}
    for place, row in json_rows(questions):
        question = _question(place, row)
        if question.group not in asked:
            raise BadDataset(f"{place}: group {question.group!r} has no memories")
        asked[question.group].append(question)
    return [Group(name, by_group[name], asked[name]) for name in by_group]


def read_questions(paths: Sequence[Path]) -> list[Question]:
    """The questions of the files in order, whatever their memories are. Raises BadDataset."""
    return [_question(place, row) for path in paths for place, row in json_rows(path)]


def safe_label(index: int, name: str) -> str:
    """A namespace label for a group: unique by its index, and as much of its name as a label may hold."""
    readable = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")
    return f"g{index}-{readable}"[:MAX_LABEL_CHARS].rstrip("-")


def json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Place (`file:line`) and object of each line but empty ones. Raises BadDataset."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadDataset(f"{place}: not JSON in UTF-8: {error}") from None
            if not isinstance(row, dict):
                raise BadDataset(f"{place}: not a JSON object")
            yield place, row


def _memory(place: str, row: Mapping[str, Any]) -> LabelledMemory:
    return LabelledMemory(
        group=text_field(place, row, "group"),
        id=text_field(place, row, "id"),
        text=text_field(place, row, "text"),
        time=_time(place, row),
        session=str(row.get("session") or ""),
        speaker=str(row.get("speaker") or ""),
    )


def _question(place: str, row: Mapping[str, Any]) -> Question:
    evidence = row.get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(piece, list) and piece for piece in evidence):
        raise BadDataset(f"{place}: evidence must be a list of lists of ids, none of these empty")
    return Question(
        group=text_field(place, row, "group"),
        id=text_field(place, row, "id"),
        text=text_field(place, row, "text"),
        context_turns=[str(turn) for turn in row.get("context_turns") or ()],
        category=str(row.get("category") or ""),
        evidence=[[str(memory_id) for memory_id in piece] for piece in evidence],
        optional=[str(memory_id) for memory_id in row.get("optional") or ()],
        time=_time(place, row),
    )


def text_field(place: str, row: Mapping[str, Any], name: str) -> str:
    """A field that must be a text, or a number taken as one. Raises BadDataset."""
    value = row.get(name)
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise BadDataset(f"{place}: {name} must be a text, got {value!r}")
    return str(value)


def _time(place: str, row: Mapping[str, Any]) -> datetime | None:
    value = row.get("time")
    if value in (None, ""):
        return None
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        raise BadDataset(f"{place}: time {value!r} is not ISO 8601") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
