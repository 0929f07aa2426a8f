"""A waiting line that is fair between namespaces: hierarchical start-time fair queueing over their labels.

Rules, the same at every level of the tree of labels:
1. Each child has a virtual time, in units of cost. Of the children in which something waits, the one with the least is
   next; of equal ones the one that was served longest ago. What is served adds its cost to the times on its path.
2. The parent's clock is where a perfectly fair server would be: each cost served moves it on by the cost, divided by
   the number of children in which something waits. Who is served while no sibling waits is at the clock.
3. A child that wakes starts at the clock less LEAD, or where it stopped, whichever is later. So nobody saves up more
   than LEAD by sleeping, what was taken ahead of others is not forgotten by a nap, and an endless row of new siblings
   cannot starve an old one, because the clock they start from moves on.
4. Within one namespace the order is that of coming. A namespace's own calls are one child beside its sub-namespaces.
5. A sleeping child vanishes once the clock, less LEAD, has passed it: it would start there anyway.

After P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing" (SIGCOMM 1996); the clock is the virtual time of A. Demers,
S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm" (SIGCOMM 1989).
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

LEAD = 128
"""Cost by which one that wakes may be ahead of its siblings: as much as one turn costs at most, so that what is short
does not wait for two long turns."""
MAX_ASLEEP = 1_024
"""Sleeping children that a node remembers; beyond it those that took least ahead are forgotten. Unmeasured."""

_UNIT = 1 << 20
"""Ticks of a virtual clock in one unit of cost: whole numbers neither drift nor run out of digits."""


@dataclass(eq=False, slots=True)
class Entry:
    """Something that waits.

    `path` is its namespace's labels from the root. `cost` is in units, at least 1. `size` is in bytes. `is_begun`: it
    was served in part, so that it cannot be given up any more.
    """

    path: tuple[str, ...]
    cost: int
    size: int = 0
    is_begun: bool = False


E = TypeVar("E", bound=Entry)


@dataclass(eq=False, slots=True)
class _Node(Generic[E]):
    """A label. `time` is its virtual time among its siblings; the rest is about what is below it.

    `count` entries of `size` bytes wait in it, of which `open_count` were not begun. `entries` are those of a namespace
    itself; only the child None of a label has some. `order` is a heap of the children in which something waits,
    `asleep` one of those in which nothing does; the latter holds stale items.
    """

    time: int = 0
    last_turn: int = -1
    count: int = 0
    open_count: int = 0
    size: int = 0
    clock: int = 0
    children: dict[str | None, "_Node[E]"] = field(default_factory=dict)
    order: list[tuple[int, int, int, str | None]] = field(default_factory=list)
    asleep: list[tuple[int, int, str | None]] = field(default_factory=list)
    entries: OrderedDict[E, None] = field(default_factory=OrderedDict)


class FairQueue(Generic[E]):
    """What waits, by namespace.

    An operation takes a time that grows with the depth of a path and the logarithm of its siblings; `remove` and
    `newest_of_largest` look at all siblings on a path.
    """

    def __init__(self) -> None:
        self._root: _Node[E] = _Node()
        self._turn = 0

    @property
    def count(self) -> int:
        """How many wait."""
        return self._root.count

    @property
    def size(self) -> int:
        """Bytes of all that wait."""
        return self._root.size

    @property
    def node_count(self) -> int:
        """Labels that are remembered, sleeping ones included."""
        return sum(1 for _ in _below(self._root))

    def push(self, entry: E, *, is_first: bool = False) -> None:
        """Lines the entry up in its namespace: last, or before all others."""
        node = self._root
        _weigh(node, entry, 1)
        for label in (*entry.path, None):
            self._turn += 1
            node = _awake(node, label, self._turn)
            _weigh(node, entry, 1)
        node.entries[entry] = None
        if is_first:
            node.entries.move_to_end(entry, last=False)

    def peek(self) -> E | None:
        """Who is next; None: nobody waits."""
        node = self._root
        while node.order:
            node = node.children[node.order[0][-1]]
        return next(iter(node.entries), None)

    def pop(self) -> E:
        """Takes out who is next, and charges its path. Raises IndexError when nobody waits."""
        entry = self.peek()
        if entry is None:
            raise IndexError("nobody waits")
        self._turn += 1
        for parent, label in self._path(entry):
            heapq.heappop(parent.order)
            _charge(parent, parent.children[label], entry.cost * _UNIT, self._turn)
        self._take(entry)
        return entry

    def remove(self, entry: E) -> None:
        """Takes an entry that waits out of the line, without a charge."""
        for parent, label in self._path(entry):
            parent.order = [item for item in parent.order if item[-1] != label]
            heapq.heapify(parent.order)
        self._take(entry)

    def newest_of_largest(self, *, by_size: bool) -> E | None:
        """Who came last where most wait, by number or by bytes, level by level; None: everything was begun.

        Of equals it is the one whose namespace came last.
        """
        node = self._root
        while node.children:
            able = [child for child in node.children.values() if child.open_count]
            if not able:
                return None
            node = max(reversed(able), key=lambda child: child.size if by_size else child.count)
        return next((entry for entry in reversed(node.entries) if not entry.is_begun), None)

    def _path(self, entry: E) -> list[tuple[_Node[E], str | None]]:
        """Each node on the way to the entry, with the label of its child."""
        steps, node = [], self._root
        for label in (*entry.path, None):
            steps.append((node, label))
            node = node.children[label]
        return steps

    def _take(self, entry: E) -> None:
        """Takes the entry out; whatever has nothing left falls asleep, the others line up again."""
        steps = self._path(entry)
        parent, label = steps[-1]
        del parent.children[label].entries[entry]
        for parent, label in reversed(steps):
            child = parent.children[label]
            _weigh(child, entry, -1)
            self._turn += 1
            if child.count:
                heapq.heappush(parent.order, (child.time, child.last_turn, self._turn, label))
            else:
                _sleep(parent, label, self._turn)
        _weigh(self._root, entry, -1)


def _weigh(node: _Node[E], entry: E, sign: int) -> None:
    node.count += sign
    node.open_count += 0 if entry.is_begun else sign
    node.size += sign * entry.size


def _awake(parent: _Node[E], label: str | None, number: int) -> _Node[E]:
    """The child, made or woken, in its parent's order."""
    child = parent.children.get(label)
    if child is None:
        child = parent.children[label] = _Node(time=parent.clock - LEAD * _UNIT)
    if not child.count:
        child.time = max(child.time, parent.clock - LEAD * _UNIT)
        heapq.heappush(parent.order, (child.time, child.last_turn, number, label))
    return child


def _charge(parent: _Node[E], child: _Node[E], ticks: int, turn: int) -> None:
    """Rules 1 and 2; the child is out of its parent's order."""
    siblings = len(parent.order)
    parent.clock = max(parent.clock, child.time) + ticks // (siblings + 1)
    child.time = child.time + ticks if siblings else parent.clock
    child.last_turn = turn


def _sleep(parent: _Node[E], label: str | None, number: int) -> None:
    """Rule 5. What happened below one that sleeps is forgotten: nobody there waits for anybody."""
    child = parent.children[label]
    child.children, child.order, child.asleep, child.clock = {}, [], [], 0
    heapq.heappush(parent.asleep, (child.time, number, label))
    while parent.asleep and (parent.asleep[0][0] <= parent.clock - LEAD * _UNIT or len(parent.asleep) > MAX_ASLEEP):
        time, _, name = heapq.heappop(parent.asleep)
        sleeper = parent.children.get(name)
        if sleeper is not None and not sleeper.count and sleeper.time == time:
            del parent.children[name]


def _below(node: _Node[E]) -> Iterator[_Node[E]]:
    """Every node below one."""
    pending: Sequence[_Node[E]] = list(node.children.values())
    while pending:
        yield from pending
        pending = [child for each in pending for child in each.children.values()]
