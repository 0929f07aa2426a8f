"""Judges what is there once everything healed and every queue drained."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.history import FinalMemory, FinalState, is_shared
from tests.chaos.model import Model, Removal, Revised, Write

LIVING = frozenset({"ACTIVE", "COLD"})
PASSING_CODES = frozenset(
    {"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN", "CANCELLED", "RESOURCE_EXHAUSTED"}
)
"""An accepted write that ended in one of these was not decided but dropped."""

Found = Iterator[tuple[str, str]]


def violations(model: Model, final: FinalState) -> Found:
    """Whatever is wrong at the end, as (kind, what)."""
    there = {memory.id: memory for memory in final.memories}
    for write in model.writes:
        yield from _write(model, write, there)
    for change in model.changes:
        yield from _change(model, change, there)
    for removal in model.removals:
        yield from _removal(removal, there)
    yield from _dropped(model, final)
    yield from _same_version(model)
    yield from _doubled(model, final)
    yield from _misplaced(model, final)
    yield from _headless(model, final)
    yield from (("resurrected", f"in the files of a store: {text}") for text in final.raw_leftovers)


def _write(model: Model, write: Write, there: dict[str, FinalMemory]) -> Found:
    if not write.is_acknowledged or not write.memory_id or write.expires:
        return
    memory = there.get(write.memory_id)
    missing = _why_gone(model, write, memory)
    if missing:
        yield "lost", f"{write.marker}: {missing}"
    elif memory is not None and _was_overwritten(model, write, memory):
        yield "lost", f"{write.marker}: {write.memory_id} says {memory.marker}"


def _change(model: Model, change: Revised, there: dict[str, FinalMemory]) -> Found:
    if not change.is_acknowledged or any(write.expires for write in model.writes_of(change.memory_id)):
        return
    memory = there.get(change.memory_id)
    missing = _why_gone(model, change, memory)
    if missing:
        yield "lost", f"change {change.marker}: {missing}"
    elif memory is not None and memory.version < change.version:
        yield "lost", f"change {change.marker}: {memory.id} is at version {memory.version}, was at {change.version}"
    elif memory is not None and _was_overwritten(model, change, memory):
        yield "lost", f"change {change.marker}: {memory.id} says {memory.marker}"


def _why_gone(model: Model, source: Write | Revised, memory: FinalMemory | None) -> str:
    """How its memory is gone without a reason; "" when it is not."""
    if memory is None:
        return "" if model.removal_after(source, hard=True) else f"{source.memory_id} is not there"
    if memory.state == "SOFT_DELETED":
        return "" if model.removal_after(source, hard=False) else f"{memory.id} is forgotten, nobody asked for it"
    if memory.state == "SUPERSEDED":
        told = isinstance(source, Write) and source.state == "SUPERSEDED"
        return "" if told or model.superseded_after(source) else f"{memory.id} is superseded, by nothing known"
    return "" if memory.state in LIVING else f"{memory.id} is {memory.state}"


def _was_overwritten(model: Model, source: Write | Revised, memory: FinalMemory) -> bool:
    """Whether it says something else than its source, which no later change explains."""
    says_other = memory.state in LIVING and memory.marker != source.marker
    return says_other and not model.change_after(source, marker=memory.marker)


def _removal(removal: Removal, there: dict[str, FinalMemory]) -> Found:
    memory = there.get(removal.memory_id)
    if not removal.is_acknowledged or memory is None:
        return
    if removal.is_hard or memory.state != "SOFT_DELETED":
        mode = "HARD" if removal.is_hard else "SOFT"
        yield "resurrected", f"{memory.id} ({memory.marker}) was forgotten {mode} and is {memory.state} at the end"


def _dropped(model: Model, final: FinalState) -> Found:
    """Accepted into the queue and never decided."""
    ended = {operation.name: operation for operation in final.operations}
    for write in model.writes:
        for name in write.operations:
            operation = ended.get(name)
            if operation is None:
                continue
            if operation.code in PASSING_CODES | {"NOT_FOUND"}:
                yield "lost", f"{write.marker}: {name} ended in {operation.code}"
            elif not operation.done:
                yield "lost", f"{write.marker}: {name} still waits"
            if operation.memory_id and write.told_ids - {operation.memory_id}:
                yield "doubled", f"{write.marker}: {sorted(write.told_ids)}, its operation says {operation.memory_id}"


def _same_version(model: Model) -> Found:
    """Two acknowledged changes made one version: one of them overwrote the other."""
    by_version: dict[tuple[str, int], list[Revised]] = defaultdict(list)
    for change in model.changes:
        if change.is_acknowledged and change.version:
            by_version[change.memory_id, change.version].append(change)
    for (memory_id, version), changes in by_version.items():
        if len(changes) > 1:
            yield "lost", f"{memory_id}: version {version} stands for {sorted(change.marker for change in changes)}"


def _doubled(model: Model, final: FinalState) -> Found:
    statements: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for memory in final.memories:
        if memory.state not in LIVING:
            continue
        statements[memory.namespace, memory.subject, memory.kind, memory.marker].append(memory.id)
        if memory.fact_key:
            statements[memory.namespace, memory.subject, memory.fact_key].append(memory.id)
    for told, ids in statements.items():
        if len(ids) > 1:
            yield "doubled", f"{' '.join(told)} is ACTIVE as {sorted(ids)}"
    for word, seen in model.ids_of.items():
        if len(seen) > 1 and not is_shared(word):
            yield "doubled", f"{word} was written once and seen as {sorted(seen)}"


def _misplaced(model: Model, final: FinalState) -> Found:
    for memory in final.memories:
        for source in model.sources.get(memory.marker, ()):
            if source.namespace != memory.namespace:
                yield "leaked", f"{memory.id} ({memory.marker}) lies in {memory.namespace}, not {source.namespace}"


def _headless(model: Model, final: FinalState) -> Found:
    """Every statement of a fact was superseded and none is left, although nobody forgot one."""
    living = {
        (memory.namespace, memory.subject, memory.fact_key) for memory in final.memories if memory.state in LIVING
    }
    for group, writes in model.groups.items():
        known = [write for write in writes if write.is_acknowledged and write.memory_id]
        if known and group not in living and not any(_may_be_forgotten(model, write) for write in writes):
            yield "lost", f"{' '.join(group)}: {len(known)} acknowledged statements, none is left"


def _may_be_forgotten(model: Model, write: Write) -> bool:
    ids = write.told_ids | model.ids_of.get(write.marker, set())
    return any(model.removals_of.get(memory_id) for memory_id in ids)
