"""When what breaks: a pure function of the seed.

Rules:
1. Faults come in rounds; each round heals, and everything must come level again before the next.
2. A round has one fault, or, in PAIR_SHARE of the rounds, two at once, never two on the same unit.
3. The rounds go through a shuffled deck of all that can break, then shuffle it anew: a run that is long enough has
   everything in it.
4. No fault takes an acknowledged write with it by its nature: the record store's data are never deleted, and of a Redis
   that holds the queue everything else is flushed (`faults.flush`).
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PAIR_SHARE = 0.5
SHORTEST_S = 1.5
LONGEST_S = 7.0
LATEST_START_S = 1.5
"""After the start of its round."""
QUIET_S = (1.5, 3.5)

LONG_KINDS = frozenset({"clock"})
"""They cost two restarts of a data plane, and show only after some time."""


@dataclass(frozen=True)
class Fault:
    """`kind` hits `target` (a unit, or a part of it after a colon) `start_s` into its round, for `duration_s`.

    `size` in [0, 1) says how badly, where a kind has degrees.
    """

    kind: str
    target: str
    start_s: float
    duration_s: float
    size: float

    @property
    def unit(self) -> str:
        """What it occupies: no second fault at once."""
        return self.target.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.kind} {self.target} for {self.duration_s:.1f} s (size {self.size:.2f})"


@dataclass(frozen=True)
class Round:
    """Faults at once, and how long it stays quiet after everything came level."""

    number: int
    faults: Sequence[Fault]
    quiet_s: float


Menu = Mapping[str, Sequence[str]]
"""Kinds to the targets that each can hit."""


def rounds(seed: int, menu: Menu, pace: float = 1.0) -> Iterator[Round]:
    """Without end, `pace` times as fast as the constants say. Raises ValueError where the menu is empty."""
    dishes = [(kind, target) for kind, targets in sorted(menu.items()) for target in targets]
    if not dishes:
        raise ValueError("the menu has no fault that can happen here")
    draw, deck, number = random.Random(seed), list[tuple[str, str]](), 0
    while True:
        if not deck:
            deck = draw.sample(dishes, len(dishes))
        number += 1
        faults = [_fault(draw, *deck.pop(), pace)]
        if draw.random() < PAIR_SHARE:
            place = next((place for place, dish in enumerate(deck) if _unit(dish[1]) != faults[0].unit), None)
            if place is not None:
                faults.append(_fault(draw, *deck.pop(place), pace))
        yield Round(number, tuple(faults), draw.uniform(*QUIET_S) / pace)


def _fault(draw: random.Random, kind: str, target: str, pace: float) -> Fault:
    start_s, duration_s, size = draw.uniform(0, LATEST_START_S), draw.uniform(SHORTEST_S, LONGEST_S), draw.random()
    return Fault(kind, target, start_s / pace, duration_s * (2 if kind in LONG_KINDS else 1) / pace, size)


def _unit(target: str) -> str:
    return target.partition(":")[0]
