"""The conversation of the demo: two departments, English and Chinese, corrections, repeats and chatter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from memplane.client import write_request
from memplane.v1 import memory_service_pb2 as pb

NOW = datetime(2024, 6, 28, 12, tzinfo=UTC)
"""The "now" of the questions: some days after the last turn."""


@dataclass(frozen=True)
class Question:
    """Something to ask, and what an answer must contain: every text of `expect`, each in some hit."""

    namespace: str
    text: str
    expect: tuple[str, ...]


def read_turns() -> list[pb.WriteMemoryRequest]:
    """Every turn as a proposal, in the order in which it was said."""
    sessions: dict[str, int] = {}
    return [_proposal(row, sessions) for row in _rows("conversation.jsonl")]


def read_questions() -> list[Question]:
    """The questions, in the order in which the demo asks them."""
    return [Question(row["namespace"], row["text"], tuple(row["expect"])) for row in _rows("questions.jsonl")]


def _proposal(row: Mapping[str, Any], sessions: dict[str, int]) -> pb.WriteMemoryRequest:
    session = row.get("session", "")
    sequence = sessions.get(session, 0)
    sessions[session] = sequence + 1
    return write_request(
        row["namespace"],
        row["text"],
        kind=row.get("kind", "FACT"),
        subject_id=row.get("subject", ""),
        session_id=session,
        sequence=sequence if session else 0,
        source=row["source"],
        speaker=row["speaker"],
        event_time=datetime.fromisoformat(row["time"]),
        fact_key=row.get("fact_key", ""),
        category=row.get("category", ""),
        source_id=row["id"],
    )


def _rows(name: str) -> list[dict[str, Any]]:
    text = resources.files("memplane.demo").joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
