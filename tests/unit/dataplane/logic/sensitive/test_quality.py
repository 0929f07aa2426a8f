"""Figures on the evaluation data do not fall below the goals (about 2 seconds, with the data)."""

from pathlib import Path

import pytest

from dataplane.logic.sensitive.detect import detect
from memplane.cli.config import evaluation_data
from memplane.evaluation.sensitive import Measured, in_words_of, measure, read_texts

pytestmark = pytest.mark.data

VALIDATED = (
    "PHONE_CN", "PHONE_US", "ID_CARD_CN", "BANK_CARD", "CREDIT_CARD", "IBAN", "US_SSN", "EMAIL", "IP", "PASSPORT_CN",
    "API_KEY", "PASSWORD",
)  # fmt: skip
STRUCTURED = (
    "CREDIT_CARD", "PHONE_NUMBER", "EMAIL_ADDRESS", "IBAN_CODE", "DOMAIN_NAME", "US_SSN", "US_DRIVER_LICENSE",
    "IP_ADDRESS",
)  # fmt: skip


def measured(name: str, most: int | None = None) -> Measured:
    data = evaluation_data()
    if data is None or not (data / name).exists():
        pytest.skip(f"MEMPLANE_EVAL_DATA names no folder with {name}")
    return _measured(data / name, most)


def _measured(path: Path, most: int | None) -> Measured:
    texts = read_texts([path])[:most]
    found = [
        [{"type": each.type, "start": each.start, "end": each.end} for each in detect(text.text)] for text in texts
    ]
    return measure(texts, in_words_of(texts, [{"spans": spans} for spans in found]))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_validated_types_are_found_and_nothing_else_is(language: str) -> None:
    result = measured(f"synthetic_pii_own/{language}.jsonl")
    scores = {name: result.types[name] for name in VALIDATED if name in result.types}
    assert len(scores) >= 8
    assert {name for name, score in scores.items() if min(score.recall, score.precision) < 0.95} == set()
    assert result.alarms == 0


def test_structured_types_of_presidio_are_found() -> None:
    types = measured("presidio_pii_en/pii.jsonl").types
    labelled = sum(types[name].labelled for name in STRUCTURED)
    assert sum(types[name].labelled * types[name].recall for name in STRUCTURED) >= 0.95 * labelled


@pytest.mark.parametrize("name", ["msc_gate_en/gate.jsonl", "locomo/turns.jsonl"])
def test_chat_raises_no_alarm(name: str) -> None:
    result = measured(name, most=3_000)
    assert result.alarms <= 0.005 * result.unlabelled
