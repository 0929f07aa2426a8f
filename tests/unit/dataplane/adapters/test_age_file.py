"""The note beside the last good policy."""

import asyncio
from math import inf
from pathlib import Path

import pytest

from dataplane.adapters import age_file
from dataplane.adapters.age_file import AgeFile, AgeNotes
from dataplane.logic.staleness import AgeNote
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from tests.unit.dataplane.test_policy_holder import SNAPSHOT

NOW_US = 50_000_000


class FixtureClock:
    def now_us(self) -> int:
        return NOW_US


@pytest.fixture
def file(tmp_path: Path) -> AgeFile:
    return AgeFile.beside(tmp_path / "last_good")


@pytest.fixture
def holder() -> PolicyHolder:
    return PolicyHolder(lambda: 100.0)


@pytest.mark.parametrize("age_s", [0.0, 12.5, inf])
def test_a_note_is_read_as_it_was_written(file: AgeFile, age_s: float) -> None:
    file.write(AgeNote(7, age_s, 1_234))
    assert file.read() == AgeNote(7, age_s, 1_234)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"generation": 1, "age_s": -1, "noted_us": 1}',
        b'{"generation": 1, "age_s": NaN, "noted_us": 1}',
        b'{"generation": "1", "age_s": 1, "noted_us": 1}',
    ],
)
def test_anything_else_is_no_note(tmp_path: Path, file: AgeFile, content: bytes) -> None:
    (tmp_path / "last_good.age").write_bytes(content)
    assert file.read() is None


async def test_the_age_at_the_start_is_noted_age_and_time_since(file: AgeFile, holder: PolicyHolder) -> None:
    file.write(AgeNote(SNAPSHOT.generation, 4.0, NOW_US - 6_000_000))
    assert await AgeNotes(holder, file, FixtureClock()).at_start(SNAPSHOT) == 10.0


async def test_an_unreadable_note_is_none(tmp_path: Path, file: AgeFile, holder: PolicyHolder) -> None:
    (tmp_path / "last_good.age").mkdir()
    assert await AgeNotes(holder, file, FixtureClock()).at_start(SNAPSHOT) == 50.0


async def test_the_age_is_noted_now_and_then_and_never_without_a_policy(
    file: AgeFile, holder: PolicyHolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = AgeNotes(holder, file, FixtureClock())
    await notes.note()
    assert file.read() is None
    holder.swap(SNAPSHOT, PolicyOrigin.LAST_GOOD, 1, age_s=3.0)
    await notes.note_now_and_then()
    assert file.read() == AgeNote(SNAPSHOT.generation, 3.0, NOW_US)
    holder.swap(SNAPSHOT, PolicyOrigin.LAST_GOOD, 1, age_s=4.0)
    await notes.note_now_and_then()
    assert file.read() == AgeNote(SNAPSHOT.generation, 3.0, NOW_US)
    monkeypatch.setattr(age_file, "NOTE_EVERY_S", 0.0)
    await notes.note_now_and_then()
    assert file.read() == AgeNote(SNAPSHOT.generation, 4.0, NOW_US)


async def test_a_note_that_cannot_be_kept_harms_nothing(tmp_path: Path, holder: PolicyHolder) -> None:
    holder.swap(SNAPSHOT, PolicyOrigin.LAST_GOOD, 1)
    await asyncio.wait_for(AgeNotes(holder, AgeFile(tmp_path / "no" / "such"), FixtureClock()).note(), 5.0)
