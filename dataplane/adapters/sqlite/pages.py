"""Where a page of a SQLite file may hold what no row holds any more (https://www.sqlite.org/fileformat2.html, 1.6).

`secure_delete` zeroes rows where they are deleted, and pages that come free. But when SQLite spreads the rows of
neighbouring pages anew, it writes a page's rows from the end of the page on and leaves what stood below them as it was:
copies of rows that have moved to another page, which nobody overwrites when the row is deleted there. They lie in the
gap between the array of cell pointers and the first cell, where nothing reads; so the gap can be zeroed.
"""

MAX_PAGES = (1 << 25) - 1
"""Pages of a file up to which the first byte tells a b-tree's page: others begin with a page's number, high byte first,
or with zeros. 128 GiB of 4 KiB pages."""

_FILE_HEADER = 100
# Length of the page header by the kind of b-tree page: inner pages of indexes and tables, leaves of both.
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}


def dirty_gap(page: bytes, number: int) -> slice:
    """The gap of a page if it holds anything but zeros, else an empty slice; pages are numbered from 1.

    Empty, too, for what is no page of a b-tree. The file must have MAX_PAGES at most, and no auto_vacuum.
    """
    start = _FILE_HEADER if number == 1 else 0
    header = _HEADERS.get(page[start])
    if header is None:
        return slice(0, 0)
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    first, end = start + header + 2 * cells, int.from_bytes(page[start + 5 : start + 7], "big") or 1 << 16
    if not first < end <= len(page) or not page[first:end].strip(b"\0"):
        return slice(0, 0)
    return slice(first, end)
