"""The shape of a filter as SQL, alike in every dialect; what a single comparison looks like is the dialect's own."""

from collections.abc import Callable
from itertools import count

from dataplane.model import AllOf, Condition, Filter, Not


def where(filter: Filter, comparison: Callable[[Condition, int], str], always: str, never: str) -> str:
    """The condition for a filter. `comparison` makes that of one Condition, numbered; `always`, `never`: constants."""
    numbers = count()

    def compiled(part: Filter) -> str:
        if isinstance(part, Condition):
            return comparison(part, next(numbers))
        if isinstance(part, Not):
            return f"NOT {compiled(part.filter)}"
        word, empty = (" AND ", always) if isinstance(part, AllOf) else (" OR ", never)
        return f"({word.join(compiled(each) for each in part.filters) or empty})"

    return compiled(filter)
