import os
from pathlib import Path

import pytest

from dataplane.adapters.last_good import CorruptLastGood, LastGoodFile
from memplane.v1 import policy_pb2

SIGNED = policy_pb2.SignedPolicySnapshot(payload=b"p", signature=b"s", key_id="k")
NEWER = policy_pb2.SignedPolicySnapshot(payload=b"q", signature=b"t", key_id="k")


def test_no_file_is_no_policy(tmp_path: Path) -> None:
    assert LastGoodFile(tmp_path / "nowhere" / "f").read() is None


def test_what_is_written_replaces_what_was_there_and_leaves_no_draft(tmp_path: Path) -> None:
    file = LastGoodFile(tmp_path / "folder" / "f")
    file.write(SIGNED)
    file.write(NEWER)
    assert file.read() == NEWER
    assert os.listdir(tmp_path / "folder") == ["f"]


def test_a_draft_left_by_a_crash_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "f.new").write_bytes(b"half")
    file = LastGoodFile(tmp_path / "f")
    file.write(SIGNED)
    assert file.read() == SIGNED


def test_a_failed_write_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LastGoodFile(tmp_path / "f")
    file.write(SIGNED)

    def disk_full(_descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="disk full"):
        file.write(NEWER)
    assert file.read() == SIGNED
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"\n\x01x"], ids=["empty", "garbage", "unsigned"])
def test_what_is_no_signed_snapshot_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(CorruptLastGood):
        LastGoodFile(tmp_path / "f").read()
