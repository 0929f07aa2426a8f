"""Deals work out to be done side by side, where some of it must keep its order."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shares(items: Sequence[T], key: Callable[[T], Hashable], most: int) -> list[list[T]]:
    """At most `most` shares, each in the order given, all items of a key in one of them. No share is empty."""
    dealt: list[list[T]] = [[] for _ in range(most)]
    share_of: dict[Hashable, int] = {}
    for item in items:
        dealt[share_of.setdefault(key(item), len(share_of) % most)].append(item)
    return [share for share in dealt if share]
