"""The fair queue under arbitrary comings, goings and costs: order, shares, no starvation, bounded memory."""

import random
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dataplane.logic.fair_queue import LEAD, MAX_ASLEEP, Entry, FairQueue

PATHS = [("a",), ("a", "x"), ("a", "y"), ("b",), ("b", "x", "y"), ("c",)]
COSTS = st.integers(1, LEAD)


class Line(RuleBasedStateMachine):
    """Against a plain list for each namespace."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[Entry] = FairQueue()
        self.waiting: dict[tuple[str, ...], list[Entry]] = defaultdict(list)

    def all(self) -> list[Entry]:
        return [entry for entries in self.waiting.values() for entry in entries]

    @rule(path=st.sampled_from(PATHS), cost=COSTS, size=st.integers(0, 100))
    def push(self, path: tuple[str, ...], cost: int, size: int) -> None:
        entry = Entry(path, cost, size)
        self.queue.push(entry)
        self.waiting[path].append(entry)

    @rule(path=st.sampled_from(PATHS), cost=COSTS)
    def push_what_was_begun(self, path: tuple[str, ...], cost: int) -> None:
        entry = Entry(path, cost, is_begun=True)
        self.queue.push(entry, is_first=True)
        self.waiting[path].insert(0, entry)

    @precondition(lambda self: self.queue.count)
    @rule()
    def pop(self) -> None:
        promised = self.queue.peek()
        entry = self.queue.pop()
        assert entry is promised
        assert self.waiting[entry.path].pop(0) is entry

    @precondition(lambda self: self.queue.count)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.all()))
        self.queue.remove(entry)
        self.waiting[entry.path].remove(entry)

    @rule(by_size=st.booleans())
    def the_newest_of_the_largest_was_not_begun_and_is_the_last_of_its_namespace(self, by_size: bool) -> None:
        found = self.queue.newest_of_largest(by_size=by_size)
        able = [entry for entry in self.all() if not entry.is_begun]
        assert (found is None) == (not able)
        if found is not None:
            assert found is [entry for entry in self.waiting[found.path] if not entry.is_begun][-1]

    @invariant()
    def it_counts_what_waits(self) -> None:
        assert self.queue.count == len(self.all())
        assert self.queue.size == sum(entry.size for entry in self.all())
        assert (self.queue.peek() is None) == (not self.all())

    def teardown(self) -> None:
        while self.queue.count:
            self.pop()
        assert self.queue.peek() is None


Line.TestCase.settings = settings(max_examples=30, stateful_step_count=50, deadline=None)
TestLine = Line.TestCase


@given(
    tenants=st.lists(st.tuples(COSTS, st.integers(1, 30)), min_size=2, max_size=6),
    seed=st.integers(0, 1000),
)
@settings(max_examples=20, deadline=None)
def test_tenants_who_always_wait_get_equal_work_whatever_their_calls_cost_and_however_many_names_they_use(
    tenants: list[tuple[int, int]], seed: int
) -> None:
    queue, served, dice = FairQueue[Entry](), [0] * len(tenants), random.Random(seed)

    def come(number: int) -> None:
        most, names = tenants[number]
        queue.push(Entry((str(number), str(dice.randrange(names))), dice.randint(1, most)))

    for number in range(len(tenants)):
        for _ in range(40):
            come(number)
    for _ in range(400):
        entry = queue.pop()
        served[int(entry.path[0])] += entry.cost
        come(int(entry.path[0]))
        assert max(served) - min(served) <= 2 * LEAD


@given(costs=st.lists(COSTS, min_size=1, max_size=30), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_nobody_starves_beside_an_endless_row_of_new_namespaces(costs: list[int], seed: int) -> None:
    queue, dice, work = FairQueue[Entry](), random.Random(seed), 0
    for cost in costs:  # it has taken all there was
        queue.push(Entry(("old",), cost))
        queue.pop()
    waits = Entry(("old",), LEAD)
    queue.push(waits)
    for turn in range(10_000):
        for number in range(2):
            queue.push(Entry((f"new{turn}-{number}",), dice.choice(costs)))
        entry = queue.pop()
        if entry is waits:
            break
        work += entry.cost
        queue.remove(max((each for each in _all(queue) if each is not waits), key=lambda each: each.path))
    assert entry is waits
    assert work <= 3 * (2 * LEAD + max(costs)) * (1 + len(costs))


def _all(queue: FairQueue[Entry]) -> list[Entry]:
    pending, found = [queue._root], list[Entry]()
    while pending:
        node = pending.pop()
        found += node.entries
        pending += node.children.values()
    return found


def test_a_quiet_one_goes_before_one_that_floods() -> None:
    queue = FairQueue[Entry]()
    for _ in range(1_000):
        queue.push(Entry(("noisy", "a"), LEAD))
    for _ in range(100):
        queue.pop()
        quiet = Entry(("quiet",), 1)
        queue.push(quiet)
        assert queue.pop() is quiet


def test_who_slept_has_saved_up_no_more_than_the_lead() -> None:
    queue = FairQueue[Entry]()
    queue.push(Entry(("sleeper",), 1))
    queue.pop()
    for _ in range(5_000):
        queue.push(Entry(("busy",), 1))
    for _ in range(2_000):
        queue.pop()
    for _ in range(2_000):
        queue.push(Entry(("sleeper",), 1))
    served = [queue.pop().path[0] for _ in range(1_000)]
    assert abs(served.count("sleeper") - 500) <= LEAD


def test_a_nap_does_not_wipe_out_what_was_taken_ahead_of_others() -> None:
    queue = FairQueue[Entry]()
    for _ in range(5_000):
        queue.push(Entry(("busy",), 1))
    work, is_napping = {"busy": 0, "napper": 0}, True
    for _ in range(4_000):
        if is_napping:
            queue.push(Entry(("napper",), 100))
        entry = queue.pop()
        work[entry.path[0]] += entry.cost
        is_napping = entry.path == ("napper",)
    assert abs(work["napper"] - work["busy"]) <= 2 * LEAD


def test_names_that_come_once_are_forgotten() -> None:
    queue = FairQueue[Entry]()
    for number in range(20_000):
        queue.push(Entry(("busy", str(number % 7)), 1))
        queue.push(Entry((f"once{number}", "a", "b"), LEAD))
        queue.pop()
        queue.pop()
    assert queue.node_count <= 2 * MAX_ASLEEP
