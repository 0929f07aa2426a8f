"""What is left of erased memories in files is found, plain or packed, and across the chunks that are read."""

import base64
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos import leftovers
from tests.chaos.history import marker
from tests.chaos.intents import sentence

ERASED, KEPT = marker(0, 1, 2), marker(0, 1, 3)


@dataclass(frozen=True)
class Folders:
    data_dirs: tuple[Path, ...]
    postgres_dsn: str | None = None
    redis_url: str | None = None
    elasticsearch_url: str | None = None
    qdrant_url: str | None = None


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "PURGED_WITHIN_S", 0.0)
    monkeypatch.setattr(leftovers, "LOOK_S", 0.0)


@pytest.mark.parametrize(
    "content",
    [
        sentence(ERASED).encode(),
        b'{"row":"' + base64.b64encode(b"\0\1" + sentence(ERASED).encode()) + b'"}',
        b"." * (leftovers.CHUNK_BYTES - 5) + ERASED.encode(),
    ],
)
async def test_an_erased_text_is_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(content)
    assert await leftovers.leftovers(Folders((tmp_path / "data",)), [ERASED]) == (f"data/file: {ERASED}",)


async def test_what_was_not_erased_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(sentence(KEPT), encoding="utf-8")
    assert await leftovers.leftovers(Folders((tmp_path,)), [ERASED]) == ()
