import json
import math
from pathlib import Path

import pytest

from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.pairs import read_pairs

PAIR = {"a": "She likes tea.", "b": "Tea is what she likes."}
ANSWER = {"question": "What does she drink?", "memory": "She likes tea."}


def write(folder: Path, *rows: object) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_both_kinds_stand_in_one_file(tmp_path: Path) -> None:
    rows = ({**PAIR, "label": "same"}, {**ANSWER, "relevant": True}, {**PAIR, "label": "different", "grade": 0.4})
    file = read_pairs(write(tmp_path, *rows))
    assert [(pair.same, pair.grade) for pair in file.pairs[1:]] == [(0, 0.4)]
    assert math.isnan(file.pairs[0].grade)
    assert file.questions == ["What does she drink?"]
    assert file.passages == ["She likes tea.", "Tea is what she likes."]


@pytest.mark.parametrize(("grade", "same"), [(1, 1), (0.9, 1), (0.7, -1), (0.59, 0), (0, 0)])
def test_a_grade_alone_says_what_is_the_same(tmp_path: Path, grade: float, same: int) -> None:
    assert read_pairs(write(tmp_path, {**PAIR, "grade": grade})).pairs[0].same == same


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**PAIR, "label": "maybe"}, 'label must be "same" or "different", got \'maybe\''),
        ({**PAIR, "label": ["same"]}, "label must be"),
        (PAIR, "label must be"),
        ({**PAIR, "grade": 5}, "grade must be a number from 0 to 1, got 5"),
        ({**PAIR, "grade": True}, "grade must be"),
        ({**PAIR, "grade": float("nan")}, "grade must be"),
        ({"a": "x", "label": "same"}, "b must be a text, got None"),
        ({**PAIR, "a": "", "label": "same"}, "a must be a text"),
        ({**ANSWER, "relevant": "yes"}, "relevant must be true or false, got 'yes'"),
        ({"question": "x", "relevant": True}, "memory must be a text"),
        ({"text": "x"}, 'neither "a", "b" and "label" nor'),
        (["a"], "not a JSON object"),
    ],
)
def test_a_bad_line_is_named_with_its_field(tmp_path: Path, row: object, words: str) -> None:
    with pytest.raises(BadDataset) as raised:
        read_pairs(write(tmp_path, {**PAIR, "label": "same"}, row))
    assert "pairs.jsonl:2: " in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize("line", [b"\xff\xfe", b"{", b"[" * 100_000, b'{"a": "\xff"}'])
def test_a_line_that_is_no_json_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(BadDataset, match=r"pairs\.jsonl:2: not JSON in UTF-8"):
        read_pairs(path)


def test_a_byte_order_mark_and_a_lone_surrogate_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\\ud83d", "b": "x", "label": "same"}')
    assert read_pairs(path).passages == ["\ud83d", "x"]
