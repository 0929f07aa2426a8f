"""Where the gap of a page lies, by the file format."""

import pytest

from dataplane.adapters.sqlite.pages import dirty_gap

SIZE = 512


def page_of(kind: int, cells: int, content: int, *, start: int = 0, filled: bytes = b"\1") -> bytes:
    """A page whose bytes after the header are all `filled`."""
    header = bytes([kind, 0, 0]) + cells.to_bytes(2, "big") + (content % 65_536).to_bytes(2, "big") + b"\0"
    return bytes(start) + header + filled * (SIZE - start - len(header))


@pytest.mark.parametrize(("kind", "header"), [(2, 12), (5, 12), (10, 8), (13, 8)])
def test_the_gap_lies_between_the_pointers_and_the_first_cell(kind: int, header: int) -> None:
    assert dirty_gap(page_of(kind, 3, 400), 7) == slice(header + 6, 400)


def test_the_first_page_begins_with_the_header_of_the_file() -> None:
    assert dirty_gap(page_of(13, 2, 300, start=100), 1) == slice(112, 300)


@pytest.mark.parametrize(
    "page",
    [
        page_of(13, 3, 400, filled=b"\0"),  # nothing in it
        page_of(13, 200, 408),  # the pointers reach the cells
        page_of(13, 3, SIZE + 1),  # cells beyond the page
        page_of(13, 0, 65_536),
        page_of(0, 3, 400),  # a page of a row that is too long for one, or a free one
        page_of(1, 3, 400),
        page_of(0xEE, 3, 400),
    ],
)
def test_other_pages_have_none(page: bytes) -> None:
    gap = dirty_gap(page, 7)
    assert gap.start == gap.stop
