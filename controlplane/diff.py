"""What differs between two compiled policy sets: values, accesses, and what the shrink guard would refuse. Pure.

Values are compared as they count, with every default filled in: moving a value to another file, or writing a default
out, is no difference. Of lists of mappings, such as grants, items that came and went are told one by one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import to_json

from controlplane.access_diff import AccessDifference, access_differences
from controlplane.compiled import Compiled
from controlplane.diagnose import Path, Position, show_path
from controlplane.shrink import shrinks
from memplane.policy.model import PolicySet

MAX_TOLD = 1000
"""How many values, and how many accesses, are listed; all are counted."""


class _Absent:
    """There is no value here."""


ABSENT = _Absent()


class ValueDifference(NamedTuple):
    """A value before and after, ABSENT where it was or is not; `file` and `line` empty: a built-in default."""

    path: str
    before: Any
    after: Any
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The first differences of each kind, how many there are, and what the shrink guard would refuse."""

    values: tuple[ValueDifference, ...]
    total_values: int
    accesses: tuple[AccessDifference, ...]
    total_accesses: int
    shrinks: tuple[str, ...]


def difference(before: Compiled | None, after: Compiled) -> Difference:
    """What replacing `before` by `after` changes; None: there was no policy.

    1,000 principals with 10,000 grants take under 2 s: call it off the event loop. Both must have compiled.
    """
    old = before.policy if before is not None else PolicySet()
    assert old is not None
    assert after.policy is not None
    values = _values(old, after.policy, before.positions if before is not None else {}, after.positions)
    accesses = access_differences(old.rbac, after.policy.rbac, MAX_TOLD)
    lost = shrinks(old, after.policy) if before is not None else []
    return Difference(
        values=tuple(values[:MAX_TOLD]),
        total_values=len(values),
        accesses=tuple(accesses.first),
        total_accesses=accesses.total,
        shrinks=tuple(lost),
    )


def _values(
    old: PolicySet, new: PolicySet, old_positions: Mapping[Path, Position], new_positions: Mapping[Path, Position]
) -> list[ValueDifference]:
    found = []
    for path, before, after in sorted(_compared((), _plain(old), _plain(new)), key=lambda each: _order(each[0])):
        place = (old_positions if after is ABSENT else new_positions).get(path)
        told = (place.file, place.line) if place is not None else ("", 0)
        found.append(ValueDifference(show_path(path), before, after, *told))
    return found


def _plain(policy: PolicySet) -> dict[str, Any]:
    """Sections with their defaults; overrides as they are written, and of rbac what is not default."""
    plain = policy.model_dump(mode="json", exclude={"rbac": True, "namespace_policy": {"overrides"}})
    overrides = {
        name: override.model_dump(mode="json", exclude_unset=True)
        for name, override in policy.namespace_policy.overrides.items()
    }
    if overrides:
        plain["namespace_policy"]["overrides"] = overrides
    if policy.rbac is not None:
        plain["rbac"] = policy.rbac.model_dump(mode="json", exclude_defaults=True)
    return plain


def _compared(path: Path, before: Any, after: Any) -> Iterator[tuple[Path, Any, Any]]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _compared((*path, key), before.get(key, ABSENT), after.get(key, ABSENT))
    elif isinstance(before, dict) and before and after is ABSENT:
        yield from _compared(path, before, {})
    elif isinstance(after, dict) and after and before is ABSENT:
        yield from _compared(path, {}, after)
    elif _are_items(before, after):
        yield from _compared_items(path, _items(before), _items(after))
    else:
        yield path, before, after


def _are_items(before: Any, after: Any) -> bool:
    """Lists of mappings, or one and none."""
    items = [*_items(before), *_items(after)]
    are_lists = all(each is ABSENT or isinstance(each, list) for each in (before, after))
    return are_lists and bool(items) and all(isinstance(one, dict) for one in items)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compared_items(path: Path, before: list[Any], after: list[Any]) -> Iterator[tuple[Path, Any, Any]]:
    """Items that went, by their place before, and that came, by theirs now; the whole list where its order changed."""
    old, new = [to_json(one) for one in before], [to_json(one) for one in after]
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if not gone and not come and old != new:
        yield path, before, after
    left, added = dict(_picked(before, old, gone)), dict(_picked(after, new, come))
    for place in {**left, **added}:
        yield (*path, place), left.get(place, ABSENT), added.get(place, ABSENT)


def _picked(items: list[Any], keys: list[bytes], wanted: Counter[bytes]) -> Iterator[tuple[int, Any]]:
    left = Counter(wanted)
    for place, (item, key) in enumerate(zip(items, keys, strict=True)):
        if left[key]:
            left[key] -= 1
            yield place, item


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    """Keys by their letters, places in lists by their numbers."""
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in path)
