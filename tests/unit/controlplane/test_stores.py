import sys
from pathlib import Path

import pytest

from controlplane.revisions import UnusableStore
from controlplane.sqlite_revisions import SqliteRevisions
from controlplane.stores import holder_id, open_store
from memplane.settings import Secret


def test_a_control_plane_keeps_its_name_and_no_two_share_one(tmp_path: Path) -> None:
    name = holder_id(tmp_path)
    assert len(name) == 16
    assert holder_id(tmp_path) == name
    other = tmp_path / "other"
    other.mkdir()
    assert holder_id(other) != name


def test_an_empty_name_file_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "control_id").write_text("\n")
    assert holder_id(tmp_path) == holder_id(tmp_path) != ""


async def test_without_a_dsn_the_revisions_lie_in_the_file(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "r.sqlite3", None)
    assert isinstance(store, SqliteRevisions)
    await store.close()
    assert (tmp_path / "r.sqlite3").exists()


async def test_a_dsn_without_the_driver_tells_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "controlplane.postgres_revisions", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnusableStore, match=r"memplane\[stores\]"):
        await open_store(tmp_path / "r.sqlite3", Secret("postgresql://db/policy"))
