"""Where to look for a sample of memories when all one can do is to read on from an id.

Ids are `mem_` and 32 hex digits, of which the first 12 are a time: memories lie in bursts with wide gaps between them.
A point drawn at random mostly falls into a gap and leads to the same first memory behind it. So what is known is taken
out: the gap from the point to the first row, and the rows read. The next point is drawn from the rest.
"""

PREFIX = "mem_"
_DIGITS = 32
_END: int = 16**_DIGITS
_SHARES: int = 2**53


class UnseenIds:
    """The part of the id range that nobody has looked into yet."""

    def __init__(self) -> None:
        self._ranges = [(0, _END)]

    def draw(self, share: float) -> str | None:
        """An id at this share (0 to 1, without 1) of what is left; None: nothing is left."""
        left = sum(end - start for start, end in self._ranges)
        if not left:
            return None
        ahead = int(share * _SHARES) * left // _SHARES
        for start, end in self._ranges:
            if ahead < end - start:
                return f"{PREFIX}{start + ahead:0{_DIGITS}x}"
            ahead -= end - start
        raise ValueError(f"share is {share}; it must lie between 0 and 1, without 1")

    def saw(self, after_id: str, last_id: str | None) -> None:
        """Takes out what lies between the two, both included; `last_id` None: up to the end."""
        first, last = _number(after_id), _END if last_id is None else max(_number(last_id), _number(after_id))
        self._ranges = [part for each in self._ranges for part in _without(each, first, last + 1)]


def _number(memory_id: str) -> int:
    """Where an id lies; what is no id of ours lies where its leading hex digits say."""
    digits = ""
    for character in memory_id.removeprefix(PREFIX)[:_DIGITS]:
        if character not in "0123456789abcdef":
            break
        digits += character
    return int(digits.ljust(_DIGITS, "0"), 16)


def _without(whole: tuple[int, int], start: int, end: int) -> list[tuple[int, int]]:
    """What is left of a range without another one."""
    parts = ((whole[0], min(whole[1], start)), (max(whole[0], end), whole[1]))
    return [(low, high) for low, high in parts if low < high]
