import pytest

from dataplane.errors import BackendUnavailable


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        ("SQLITE_FULL", "record_store: the disk is full (SQLITE_FULL)"),
        ("SQLITE_IOERR_WRITE", "record_store: the disk failed (SQLITE_IOERR_WRITE)"),
        ("deadline passed", "record_store: deadline passed"),
        ("", "record_store: does not answer"),
    ],
)
def test_a_backend_that_is_down_is_told_in_words(detail: str, text: str) -> None:
    assert str(BackendUnavailable("record_store", detail)) == text
