"""Who may see which memory: a plain dict of what was stored, and of who put which marker where.

What is stored is learned where it reaches the record store, and held against what was asked: a marker in a memory of a
namespace into which nobody put it is a fault by itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memplane.v1 import memory_pb2 as pb
from tests.leak.words import MARKER
from tests.leak.world import FORGET, READ, WRITE, Cell, Principal, World


@dataclass(frozen=True)
class Version:
    """A memory as it was from some round on."""

    since: int
    cell: Cell
    markers: frozenset[bytes]


@dataclass
class Entry:
    """A memory. `gone`: "" while it stands, SOFT or HARD once it is forgotten, with the round in which it was."""

    namespace: str
    is_shared: bool
    versions: list[Version] = field(default_factory=list)
    gone: str = ""
    gone_round: int = 0

    def current(self, now: int) -> list[Version]:
        """What it may be in a round: as it stood when that began, and as it was made in it."""
        before = [version for version in self.versions if version.since < now]
        return [*before[-1:], *(version for version in self.versions if version.since >= now)]


@dataclass
class Truth:
    """Everything that there is.

    `round` counts the steps of the run: what is forgotten in one may still be seen in it. `own`: who wrote a marker
    himself. `operations`: whose each is. `pages`: whose query a page token belongs to.
    """

    world: World
    round: int = 0
    memories: dict[str, Entry] = field(default_factory=dict)
    planted: dict[bytes, set[str]] = field(default_factory=lambda: defaultdict(set))
    own: dict[bytes, set[str]] = field(default_factory=lambda: defaultdict(set))
    holding: dict[bytes, set[str]] = field(default_factory=lambda: defaultdict(set))
    operations: dict[str, str] = field(default_factory=dict)
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    misplaced: list[str] = field(default_factory=list)

    def plant(self, namespace: str, request: bytes) -> None:
        """A request that puts its markers into a namespace is about to be sent."""
        for marker in MARKER.findall(request):
            self.planted[marker].add(namespace)

    def written_by(self, principal: Principal, request: bytes) -> None:
        """What somebody writes himself is no secret to him."""
        for marker in MARKER.findall(request):
            self.own[marker].add(principal.name)

    def stored(self, namespace: str, is_shared: bool, body: bytes, reason: str) -> None:
        """A version of a memory was stored, for this reason."""
        message = pb.Memory.FromString(body)
        entry = self.memories.setdefault(message.id, Entry(namespace, is_shared))
        markers = frozenset(MARKER.findall(body + reason.encode()))
        if entry.namespace != namespace:
            self.misplaced.append(f"memory {message.id} of {entry.namespace} was stored in {namespace}")
        for marker in markers:
            self.holding[marker].add(message.id)
            if namespace not in self.planted[marker] and marker not in self._labels():
                where = sorted(self.planted[marker])
                self.misplaced.append(f"{marker.decode()}, put into {where}, was stored in {namespace}")
        entry.versions.append(Version(self.round, _cell(message), markers))

    def forgotten(self, memory_id: str, how: str) -> None:
        """A memory was forgotten SOFT or HARD."""
        entry = self.memories.get(memory_id)
        if entry is not None and entry.gone != "HARD":
            entry.gone, entry.gone_round = how, self.round

    def sees_marker(self, principal: Principal, marker: bytes, *, forgotten_too: bool) -> bool:
        """Whether he may be shown this word."""
        label_of = self._labels().get(marker)
        if label_of is not None:
            return any(self.world.may(principal, each, label_of) for each in (READ, WRITE, FORGET))
        if principal.name in self.own.get(marker, ()):
            return True
        entries = (self.memories[memory_id] for memory_id in self.holding.get(marker, ()))
        return any(self._shows(principal, entry, forgotten_too=forgotten_too, marker=marker) for entry in entries)

    def sees_memory(self, principal: Principal, memory_id: str, *, forgotten_too: bool) -> bool:
        """Whether he may be shown a memory."""
        entry = self.memories.get(memory_id)
        return entry is not None and self._shows(principal, entry, forgotten_too=forgotten_too)

    def knows_id(self, principal: Principal, memory_id: str) -> bool:
        """Whether he may hear of the id: he may read the memory, or writes where it lies (what he writes is merged).

        Forgotten or not: an id says nothing of what was forgotten.
        """
        entry = self.memories.get(memory_id)
        if entry is None:
            return False
        writes = (self.world.may(principal, each, entry.namespace) for each in (WRITE, FORGET))
        return any(writes) or self._reads(principal, entry, entry.versions)

    def hidden_from(self, principal: Principal) -> list[str]:
        """Ids of memories that are none of his business."""
        return [memory_id for memory_id in self.memories if not self.knows_id(principal, memory_id)]

    def cell_of(self, memory_id: str) -> Cell:
        """Of its newest version."""
        return self.memories[memory_id].versions[-1].cell

    def _shows(self, principal: Principal, entry: Entry, *, forgotten_too: bool, marker: bytes = b"") -> bool:
        if entry.gone == "HARD" and entry.gone_round < self.round:
            return False
        if entry.gone == "SOFT" and entry.gone_round < self.round and not forgotten_too:
            return False
        versions = [version for version in entry.versions if not marker or marker in version.markers]
        return self._reads(principal, entry, versions)

    def _reads(self, principal: Principal, entry: Entry, versions: Iterable[Version]) -> bool:
        """An old version may be read by who may read it and the memory as it stands, or stood when the round began."""
        return any(self._may(principal, entry, each) for each in versions) and any(
            self._may(principal, entry, each) for each in entry.current(self.round)
        )

    def _may(self, principal: Principal, entry: Entry, version: Version) -> bool:
        return self.world.may(principal, READ, entry.namespace, version.cell)

    def _labels(self) -> Mapping[bytes, str]:
        labels = self.world.labels.items()
        return {label.encode(): f"{root}.x.{label}" for root, label in labels}


def _cell(message: pb.Memory) -> Cell:
    return Cell(
        pb.Layer.Name(message.layer).removeprefix("LAYER_"),
        pb.Kind.Name(message.kind).removeprefix("KIND_"),
        pb.Sensitivity.Name(message.sensitivity).removeprefix("SENSITIVITY_"),
    )
