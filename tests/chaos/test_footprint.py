"""The slope of memory is that of the processes, not of their restarts, nor of the files that they map."""

import mmap
import os
from pathlib import Path

import pytest

from tests.chaos.footprint import WARM_UP, Footprint, Sample, memory_of, slope

SIZE = 32 * 1024 * 1024


def test_the_slope_is_taken_within_each_process() -> None:
    assert slope([[(0, 100.0), (10, 110.0)], [(20, 50.0), (30, 60.0)]]) == pytest.approx(1.0)


def test_no_slope_where_nothing_was_done() -> None:
    assert slope([[(5, 100.0), (5, 110.0)]]) == 0.0


def test_the_start_of_a_process_and_what_is_mapped_are_left_out() -> None:
    start = [Sample(number, 10.0 * number, 0.0) for number in range(WARM_UP)]
    then = [Sample(WARM_UP + number, 300.0, 50.0 * number) for number in range(10)]
    footprint = Footprint({("data-1", 1): start + then, ("data-2", 2): start})
    assert footprint.slopes() == {"data-1": pytest.approx(0.0)}
    assert (footprint.peak_mib(), footprint.peak_mapped_mib()) == (300.0, 450.0)


def test_a_mapped_file_is_not_memory_of_ones_own(tmp_path: Path) -> None:
    own, mapped = memory_of(os.getpid())
    path = tmp_path / "file"
    path.write_bytes(b"x" * SIZE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        assert sum(view[::4096]) > 0
        own_now, mapped_now = memory_of(os.getpid())
    assert mapped_now - mapped == pytest.approx(32, abs=2)
    assert own_now - own < 8
