"""The file with the last beacon."""

from pathlib import Path

from dataplane.adapters.witness_file import WitnessFile


def test_the_last_beacon_and_position_are_kept_over_a_restart(tmp_path: Path) -> None:
    WitnessFile(tmp_path / "beacon").write(7, 1)
    WitnessFile(tmp_path / "beacon").write(2**61, 12)
    assert WitnessFile(tmp_path / "beacon").read() == (2**61, 12)


def test_no_file_and_a_damaged_one_tell_nothing(tmp_path: Path) -> None:
    assert WitnessFile(tmp_path / "beacon").read() == (0, 0)
    (tmp_path / "beacon").write_text("half a numb")
    assert WitnessFile(tmp_path / "beacon").read() == (0, 0)
