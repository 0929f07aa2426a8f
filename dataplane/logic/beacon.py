"""Beacons: numbers by which an index and the record store tell whether they still have the same past.

A data plane writes each new number into the record store first and then into the indexes. So an index is never ahead of
the record store, and never behind what it acknowledged, unless one of them was wiped, set back, or is another one.

A number of 62 bits has three parts: the *era* (10 bits) rises when an operator accepts that the record store was
restored; the *counter* (30 bits: 340 years at one in 10 s) rises with each beacon of an era; the *mark* (22 bits) is
random, so that two pasts that count alike differ. 0 is no beacon.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_MARK_BITS, _COUNTER_BITS, _ERA_BITS = 22, 30, 10
MARKS: int = 2**_MARK_BITS
_COUNTERS: int = 2**_COUNTER_BITS
ERAS: int = 2**_ERA_BITS


@dataclass(frozen=True, slots=True)
class Beacon:
    """A beacon taken apart. Raises ValueError for a part that is out of range."""

    era: int
    counter: int
    mark: int

    def __post_init__(self) -> None:
        if not (0 <= self.era < ERAS and 0 <= self.counter < _COUNTERS and 0 <= self.mark < MARKS):
            raise ValueError(f"era {self.era}, counter {self.counter}, mark {self.mark}: one does not fit its bits")

    @classmethod
    def of(cls, number: int) -> "Beacon":
        """From its number."""
        return cls(number >> (_MARK_BITS + _COUNTER_BITS), number >> _MARK_BITS & (_COUNTERS - 1), number & (MARKS - 1))

    @property
    def number(self) -> int:
        """As it is kept."""
        return (self.era << (_MARK_BITS + _COUNTER_BITS)) | (self.counter << _MARK_BITS) | self.mark

    @property
    def place(self) -> tuple[int, int]:
        """What orders beacons of one name."""
        return self.era, self.counter


def following(number: int, era: int, mark: int) -> int:
    """The beacon after this one (0: none yet); `era` is the present one. Raises ValueError past the last one."""
    before = Beacon.of(number)
    counter = before.counter if before.era == era else 0
    return Beacon(era, counter + 1, mark).number


def is_ahead(seen: int, stored: int, era: int) -> bool:
    """Whether a beacon seen elsewhere was never in the past of a record store that is in `era` and has `stored`.

    What was seen of earlier eras was accepted.
    """
    if seen == 0:
        return False
    there, here = Beacon.of(seen), Beacon.of(stored)
    if there.era != era:
        return there.era > era
    return there.place > here.place or (there.place == here.place and seen != stored)


def has_lost(held: int, acknowledged: int, era: int) -> bool:
    """Whether an index that acknowledged a beacon must be compared anew: it holds none or an older one.

    Or another one that counts alike, or an operator accepted another past of the record store since.
    """
    if acknowledged == 0:
        return False
    there, known = Beacon.of(held), Beacon.of(acknowledged)
    if known.era < era:
        return True
    return there.place < known.place or (there.place == known.place and held != acknowledged)


def with_saved(kept: Mapping[str, int], name: str, value: int) -> dict[str, int]:
    """The numbers that an index keeps once it is given one: what comes late lowers none, and 0 takes a name out."""
    if value:
        return {**kept, name: max(value, kept.get(name, 0))}
    return {each: number for each, number in kept.items() if each != name}
