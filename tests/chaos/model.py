"""What may have happened, read from a history: each write, change and removal with the span in which it took effect.

An operation took effect once between `start_s` and `end_s`: from the first attempt's start to the first good answer's
end. Where no attempt was answered well it may have happened at any time since, or not at all (`end_s` infinite,
`is_acknowledged` false). Operations that every attempt was refused are not here: they did nothing.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.chaos.history import Entry, FinalState, is_shared

NO_EFFECT = frozenset(
    {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "UNIMPLEMENTED",
        "RESOURCE_EXHAUSTED",
    }
)
"""Answers after which nothing was done, by the contract. All others leave it open."""

Key = tuple[int, int, int]
Group = tuple[str, str, str]
T = TypeVar("T", bound="Happening")


@dataclass(slots=True, kw_only=True)
class Happening:
    """What a write, a change and a removal have in common. `memory_id` "" while unknown."""

    key: Key
    tenant: int
    namespace: str
    start_s: float
    end_s: float = math.inf
    is_acknowledged: bool = False
    memory_id: str = ""
    token: str = ""

    def may_follow(self, other: "Happening", *, clocks_skewed: bool = False) -> bool:
        """Whether it may have taken effect after another did."""
        return clocks_skewed or self.end_s > other.start_s

    def was_done_by(self, time_s: float) -> bool:
        """Whether its answer had come by then."""
        return self.is_acknowledged and self.end_s <= time_s


@dataclass(slots=True, kw_only=True)
class Write(Happening):
    """A statement proposed. `told_ids` and `operations` hold every different answer its attempts had."""

    subject: str
    kind: str
    marker: str
    fact_key: str = ""
    expires: bool = False
    state: str = ""
    version: int = 0
    told_ids: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)
    superseded_ids: set[str] = field(default_factory=set)

    @property
    def group(self) -> Group | None:
        """Memories of which one at a time is ACTIVE; None without a fact key."""
        return (self.namespace, self.subject, self.fact_key) if self.fact_key else None


@dataclass(slots=True, kw_only=True)
class Revised(Happening):
    """A change of a memory's text."""

    marker: str
    version: int = 0


@dataclass(slots=True, kw_only=True)
class Removal(Happening):
    """A memory forgotten, for good when `is_hard`."""

    is_hard: bool


class Model:
    """Everything that may have happened, by what it happened to."""

    def __init__(self, history: Iterable[Entry], final: FinalState, *, clocks_skewed: bool = False):
        self.clocks_skewed = clocks_skewed
        self.entries: Sequence[Entry] = [*history, *final.reads]
        calls = _by_call(self.entries)
        self.writes = [write for attempts in calls["write"] if (write := _write(attempts)) is not None]
        self._resolve(final)
        self.changes = [change for attempts in calls["update"] if (change := _change(attempts)) is not None]
        self.removals = [removal for attempts in calls["forget"] if (removal := _removal(attempts)) is not None]
        self.ids_of = _sightings(self.entries, final, self.writes)
        self.removals_of = _by_id(self.removals)
        self.changes_of = _by_id(self.changes)
        self.sources = _by_marker(self.writes, self.changes)
        self.groups: dict[Group, list[Write]] = defaultdict(list)
        for write in self.writes:
            if write.group is not None:
                self.groups[write.group].append(write)
        self.writes_about: dict[tuple[str, str], list[Write]] = defaultdict(list)
        self.replacements_of: dict[str, list[Write]] = defaultdict(list)
        for write in self.writes:
            self.writes_about[write.namespace, write.subject].append(write)
            for memory_id in write.superseded_ids:
                self.replacements_of[memory_id].append(write)
        self._fact_at_end = {
            memory.id: (memory.namespace, memory.subject, memory.fact_key)
            for memory in final.memories
            if memory.fact_key
        }
        self._writes_of = _writes_by_id(self.writes, self.ids_of)

    def _resolve(self, final: FinalState) -> None:
        """Gives queued writes the ids that their operations told."""
        queued = {name: write for write in self.writes for name in write.operations}
        for entry in self.entries:
            write = queued.get(entry.asked.get("operation", ""))
            if write is not None and entry.code == "OK" and entry.told.get("done") and entry.end_s is not None:
                _settle(write, entry.told, entry.end_s)
        for operation in final.operations:
            write = queued.get(operation.name)
            if write is not None and operation.memory_id and not write.memory_id:
                _settle(write, {"id": operation.memory_id, "state": operation.state}, math.inf)

    def writes_of(self, memory_id: str) -> Sequence[Write]:
        """The writes that may have made or met a memory."""
        return self._writes_of.get(memory_id, ())

    def removal_after(self, source: Happening, before_s: float = math.inf, *, hard: bool | None = None) -> bool:
        """Whether its memory may have been forgotten after it, and before a time."""
        return any(
            removal.may_follow(source) and removal.start_s < before_s and hard in (None, removal.is_hard)
            for removal in self.removals_of.get(source.memory_id, ())
        )

    def change_after(self, source: Happening, before_s: float = math.inf, marker: str = "") -> bool:
        """Whether its memory's text may have been changed after it (to that of `marker`), and before a time."""
        return any(
            change is not source
            and change.may_follow(source)
            and change.start_s < before_s
            and marker in ("", change.marker)
            for change in self.changes_of.get(source.memory_id, ())
        )

    def superseded_after(self, source: Happening, before_s: float = math.inf) -> bool:
        """Whether another statement may have taken the place of its memory, before a time."""
        return any(
            rival.memory_id != source.memory_id
            and rival.may_follow(source, clocks_skewed=self.clocks_skewed)
            and rival.start_s < before_s
            for group in self._facts_of(source.memory_id)
            for rival in self.groups.get(group, ())
        )

    def _facts_of(self, memory_id: str) -> set[Group]:
        """What its writes said that it is a statement of, and what the end says, where those are not known."""
        told = {write.group for write in self.writes_of(memory_id)} | {self._fact_at_end.get(memory_id)}
        return {group for group in told if group is not None}

    def may_be_gone(self, source: Happening, before_s: float) -> bool:
        """Whether a read that ended then may rightly lack the source's memory or its text."""
        return (
            any(write.expires for write in self.writes_of(source.memory_id))
            or self.removal_after(source, before_s)
            or self.change_after(source, before_s)
            or self.superseded_after(source, before_s)
        )


def _by_call(entries: Iterable[Entry]) -> Mapping[str, Sequence[Sequence[Entry]]]:
    """Method to calls, each the list of its attempts in order."""
    calls: dict[str, dict[Key, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        calls[entry.method][entry.client, entry.intent, entry.item].append(entry)
    ordered: dict[str, Sequence[Sequence[Entry]]] = defaultdict(tuple)
    for method, found in calls.items():
        ordered[method] = [sorted(attempts, key=lambda entry: entry.attempt) for attempts in found.values()]
    return ordered


def _open(attempts: Sequence[Entry]) -> bool:
    """Whether an attempt may have done something."""
    return any(entry.code not in NO_EFFECT for entry in attempts)


def _good(attempts: Sequence[Entry]) -> Entry | None:
    """The first good answer."""
    return next((entry for entry in attempts if entry.code == "OK"), None)


def _base(attempts: Sequence[Entry]) -> dict[str, Any]:
    first, good = attempts[0], _good(attempts)
    return {
        "key": (first.client, first.intent, first.item),
        "tenant": first.tenant,
        "namespace": first.asked["ns"],
        "start_s": first.start_s,
        "memory_id": first.asked.get("id", ""),
        "end_s": math.inf if good is None or good.end_s is None else good.end_s,
        "is_acknowledged": good is not None,
        "token": "" if good is None else good.told.get("token", ""),
    }


def _write(attempts: Sequence[Entry]) -> Write | None:
    """The write of some attempts; None when it stored nothing."""
    if not _open(attempts):
        return None
    asked, answers = attempts[0].asked, [entry.told for entry in attempts if entry.code == "OK"]
    refused = [told for told in answers if told.get("action") == "REJECTED"]
    if refused and len(refused) == len([entry for entry in attempts if entry.code not in NO_EFFECT]):
        return None
    write = Write(
        **_base(attempts),
        subject=asked["subject"],
        kind=asked["kind"],
        marker=asked["marker"],
        fact_key=asked.get("fact_key", ""),
        expires=bool(asked.get("ttl")),
    )
    kept = [told for told in answers if told.get("action") != "REJECTED"]
    write.is_acknowledged = bool(kept)
    write.operations = {told["operation"] for told in kept if told.get("operation")}
    for told in kept:
        if told.get("id"):
            _settle(write, told, write.end_s)
    if write.operations and not write.memory_id:
        write.end_s = math.inf  # accepted, not yet applied
    return write


def _settle(write: Write, told: Mapping[str, Any], end_s: float) -> None:
    memory_id = told.get("id", "")
    if not memory_id:
        return
    write.told_ids.add(memory_id)
    if write.memory_id:
        return
    write.memory_id, write.end_s = memory_id, end_s
    write.state, write.version = told.get("state", ""), told.get("version", 0)
    write.token = told.get("token", "")
    write.superseded_ids.update(told.get("superseded", ()))


def _change(attempts: Sequence[Entry]) -> Revised | None:
    if not _open(attempts):
        return None
    good = _good(attempts)
    version = 0 if good is None else good.told.get("version", 0)
    return Revised(**_base(attempts), marker=attempts[0].asked["marker"], version=version)


def _removal(attempts: Sequence[Entry]) -> Removal | None:
    return Removal(**_base(attempts), is_hard=attempts[0].asked["mode"] == "HARD") if _open(attempts) else None


def _by_id(happenings: Iterable[T]) -> Mapping[str, Sequence[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for happening in happenings:
        found[happening.memory_id].append(happening)
    return found


def _by_marker(writes: Iterable[Write], changes: Iterable[Revised]) -> Mapping[str, Sequence[Write | Revised]]:
    found: dict[str, list[Write | Revised]] = defaultdict(list)
    for write in writes:
        found[write.marker].append(write)
    for change in changes:
        found[change.marker].append(change)
    return found


def _sightings(entries: Iterable[Entry], final: FinalState, writes: Iterable[Write]) -> Mapping[str, set[str]]:
    """Marker to the ids that were seen with it, in reads, in answers to writes, and at the end."""
    found: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        for memory_id, _, word, _ in entry.told.get("hits", ()):
            found[word].add(memory_id)
    for memory in final.memories:
        found[memory.marker].add(memory.id)
    for write in writes:
        found[write.marker].update(write.told_ids)
    return found


def _writes_by_id(writes: Iterable[Write], ids_of: Mapping[str, set[str]]) -> Mapping[str, Sequence[Write]]:
    found: dict[str, list[Write]] = defaultdict(list)
    for write in writes:
        seen = write.told_ids if is_shared(write.marker) else write.told_ids | ids_of.get(write.marker, set())
        for memory_id in seen:
            found[memory_id].append(write)
    return found
