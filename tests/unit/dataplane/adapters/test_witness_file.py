"""The file with the last beacon."""

from pathlib import Path

from dataplane.adapters.witness_file import WitnessFile


def test_a_number_is_kept_over_a_restart(tmp_path: Path) -> None:
    WitnessFile(tmp_path / "beacon").write(2**61)
    WitnessFile(tmp_path / "beacon").write(7)
    assert WitnessFile(tmp_path / "beacon").read() == 7


def test_no_file_and_a_damaged_one_tell_nothing(tmp_path: Path) -> None:
    assert WitnessFile(tmp_path / "beacon").read() == 0
    (tmp_path / "beacon").write_text("half a numb")
    assert WitnessFile(tmp_path / "beacon").read() == 0
