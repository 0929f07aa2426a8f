import json
from pathlib import Path
from typing import Any

import pytest

from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.sensitive import Span, in_words_of, measure, read_texts


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(text: str, *spans: tuple[str, int, int]) -> dict[str, Any]:
    return {
        "id": text,
        "text": text,
        "spans": [{"type": name, "start": start, "end": end} for name, start, end in spans],
    }


def answer(*spans: tuple[str, int, int]) -> dict[str, Any]:
    return {"spans": [{"type": name, "start": start, "end": end} for name, start, end in spans]}


def test_a_set_is_measured_in_its_own_words(tmp_path: Path) -> None:
    data = written(
        tmp_path / "rows.jsonl",
        row("call 1", ("PHONE_NUMBER", 5, 6)),
        row("mail a b", ("EMAIL_ADDRESS", 5, 6), ("PERSON", 7, 8)),
        row("nothing"),
        {"text": "chat"},
    )
    texts = read_texts([data])
    answers = [answer(("PHONE_CN", 5, 6)), answer(("EMAIL", 4, 6)), answer(("URL", 0, 2)), answer()]
    found = in_words_of(texts, answers)
    assert found == [[Span(5, 6, "PHONE_NUMBER")], [Span(4, 6, "EMAIL_ADDRESS")], [Span(0, 2, "URL")], []]
    result = measure(texts, found)
    assert (result.alarms, result.unlabelled) == (1, 2)
    phone, mail, everything = (result.types[name] for name in ("PHONE_NUMBER", "EMAIL_ADDRESS", "all"))
    assert (phone.recall, phone.precision) == (1.0, 1.0)
    assert (mail.recall, mail.precision, mail.covered) == (0.0, 0.0, 1.0)
    assert (everything.labelled, everything.recall) == (2, 0.5)  # nobody looks for persons
    assert result.types["PERSON"].recall == 0.0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"text": 1}, "text must be a text"),
        ({"text": "a", "spans": "b"}, "spans must be a list"),
        ({"text": "a", "spans": ["b"]}, "a span needs type, start and end"),
        ({"text": "a", "spans": [{"type": "A", "start": 0, "end": 2}]}, "0 ≤ start < end ≤ 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    data = written(tmp_path / "rows.jsonl", row("fine"), wrong)
    with pytest.raises(BadDataset, match=told) as refused:
        read_texts([data])
    assert str(refused.value).startswith(f"{data}:2: ")
