from pathlib import Path

import pytest

from dataplane.config import read_record_store
from dataplane.migrate import FAILED, WRONG_USAGE, run
from memplane.settings import BadConfig


def test_a_store_that_is_not_migrated_so_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json"]) == WRONG_USAGE
    assert "record_store.adapter: is sqlite" in capsys.readouterr().err


def test_without_an_owner_nothing_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--dsn", "postgresql://app:secret@127.0.0.1:1/memplane", "--check"]) == FAILED
    said = capsys.readouterr().err
    assert "migrate_dsn is missing" in said
    assert "secret" not in said


def test_the_section_of_a_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    path = tmp_path / "memplane.toml"
    path.write_text('[record_store]\nadapter = "postgres"\ndsn = "${APP}"\nmigrate_dsn = "of the file"\n')
    environment = {"APP": "filled in", "MEMPLANE_MIGRATE_MIGRATE_DSN": "of the environment"}
    part = read_record_store(["--config", str(path)], environment)
    assert (part.adapter, part.table) == ("postgres", {"dsn": "filled in", "migrate_dsn": "of the environment"})
    with pytest.raises(BadConfig, match="APP"):
        read_record_store(["--config", str(path)], {})
