import json
import re
from datetime import UTC, datetime

import pytest

from memplane.evaluation.dataset import BadDataset, read_groups, safe_label
from memplane.policy.names import is_namespace

MEMORY = {
    "group": "张曼婷",
    "id": "1",
    "text": "hello",
    "time": "2023-05-08T13:56:00",
    "session": None,
    "speaker": None,
}
QUESTION = {"group": "张曼婷", "id": "q", "text": "who?", "context_turns": [], "category": "c", "evidence": [["1"]]}


def write(tmp_path, memories, questions):
    paths = tmp_path / "m.jsonl", tmp_path / "q.jsonl"
    for path, rows in zip(paths, (memories, questions), strict=True):
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return paths


def test_groups_hold_their_memories_and_questions(tmp_path):
    later = {**MEMORY, "id": "2", "time": "2023-06-01T00:00:00+02:00", "session": "s", "speaker": "Mel"}
    (group,) = read_groups(*write(tmp_path, [MEMORY, "\n", later], [QUESTION]))
    assert [memory.id for memory in group.memories] == ["1", "2"]
    assert group.memories[0].time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert group.last_time == group.memories[1].time
    assert group.questions[0].evidence == [["1"]]


def test_a_question_may_have_no_evidence(tmp_path):
    (group,) = read_groups(*write(tmp_path, [MEMORY], [{**QUESTION, "evidence": []}]))
    assert group.questions[0].evidence == []


@pytest.mark.parametrize(
    ("memories", "questions", "message"),
    [
        ([MEMORY, MEMORY], [QUESTION], r"m\.jsonl:2: id '1' stands twice"),
        ([MEMORY], [{**QUESTION, "group": "x"}], r"q\.jsonl:1: group 'x' has no memories"),
        ([MEMORY], [{**QUESTION, "evidence": None}], r"q\.jsonl:1: evidence must be"),
        ([MEMORY], [{**QUESTION, "evidence": [[]]}], r"q\.jsonl:1: evidence must be"),
        ([{**MEMORY, "time": "May"}], [QUESTION], r"m\.jsonl:1: time 'May' is not ISO 8601"),
        ([{**MEMORY, "text": ""}], [QUESTION], r"m\.jsonl:1: text must be a text"),
        (["{"], [QUESTION], r"m\.jsonl:1: not JSON"),
        (["[]"], [QUESTION], r"m\.jsonl:1: not a JSON object"),
    ],
)
def test_a_bad_line_is_named(tmp_path, memories, questions, message):
    with pytest.raises(BadDataset, match=message):
        read_groups(*write(tmp_path, memories, questions))


@pytest.mark.parametrize("name", ["conv-26", "张曼婷", "A b/../c", "x" * 200, "", "._.", "DEPT.Sales"])
def test_every_group_name_makes_a_label(name):
    label = safe_label(7, name)
    assert is_namespace(f"eval.{label}")
    assert re.match(r"g7(-|$)", label)
