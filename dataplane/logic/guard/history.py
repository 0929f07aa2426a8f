"""What a writer did of late: near-alike statements at once (a burst), and attacks before.

Rules. A writer is a principal with the source it names. Two statements are near-alike when they share `similarity` of
the words of the shorter one and both have at least FEWEST_WORDS (overlap coefficient; Szymkiewicz 1934). The newest
WRITERS writers and their newest STATEMENTS statements are remembered, and nothing longer than asked for; a process
remembers its own writers alone. Nothing here is a proof: attacks of one writer in many processes, or slow ones, are
left to `consensus`.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

WRITERS = 1_024
STATEMENTS = 32
FEWEST_WORDS = 4
MOST_WORDS = 64
"""Words of a statement that are compared. All four unmeasured: at most some 30 MB are held."""
ATTACK_MEMORY_US = 3_600_000_000
"""An hour: how long an attack is held against its writer. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the principal of the call, and the source it names."""

    principal_id: str
    namespace: str
    source_type: int
    name: str


@dataclass(frozen=True, slots=True)
class Past:
    """Statements near-alike to a new one within the window, without it, and attacks of the writer in the last hour."""

    near_alike: int
    attacks: int


@dataclass(slots=True)
class _Track:
    statements: deque[tuple[int, frozenset[str]]] = field(default_factory=lambda: deque(maxlen=STATEMENTS))
    attacks: deque[int] = field(default_factory=lambda: deque(maxlen=STATEMENTS))


class WriterHistory:
    """Remembers what writers said, within bounds."""

    def __init__(self) -> None:
        self._tracks: OrderedDict[Writer, _Track] = OrderedDict()

    def past(self, writer: Writer, words: frozenset[str], since_us: int, similarity: float, now_us: int) -> Past:
        """What is remembered of a writer who now says `words`; statements from `since_us` on."""
        track = self._tracks.get(writer)
        if track is None:
            return Past(0, 0)
        near = sum(said_us >= since_us and overlap(words, said) >= similarity for said_us, said in track.statements)
        attacks = sum(time_us >= now_us - ATTACK_MEMORY_US for time_us in track.attacks)
        return Past(near, attacks)

    def note(self, writer: Writer, words: frozenset[str], now_us: int, *, is_attack: bool) -> None:
        """Remembers a statement."""
        track = self._tracks.setdefault(writer, _Track())
        self._tracks.move_to_end(writer)
        track.statements.append((now_us, words))
        if is_attack:
            track.attacks.append(now_us)
        if len(self._tracks) > WRITERS:
            self._tracks.popitem(last=False)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the smaller set's words that both hold, 0 to 1; 0 where one has fewer than FEWEST_WORDS."""
    fewest = min(len(one), len(other))
    return len(one & other) / fewest if fewest >= FEWEST_WORDS else 0.0
