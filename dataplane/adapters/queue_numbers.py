"""Ids of queue entries that are numbers, read from what a caller gave."""

MOST_DIGITS = 18
"""All of them fit 63 bits."""


def number_of(entry_id: str) -> int:
    """The number of an id; 0, which no entry has, for "" and for what is no id."""
    is_number = entry_id.isascii() and entry_id.isdigit() and len(entry_id) <= MOST_DIGITS
    return int(entry_id) if is_number else 0
