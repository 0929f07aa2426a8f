"""Which memories of a namespace a caller may touch: grants with conditions, held memory by memory.

Rules:
1. A memory lies in a cell of layer, kind and sensitivity; a permission is granted on cells (`memplane.policy.cells`).
   Stores are asked for the cells as far as a filter can say them, and every memory is looked at again before it leaves:
   nothing rests on a store's filter alone.
2. A memory that a caller may not read does not exist for him: MemoryNotFound, as of one that never was.
3. Of one that he may read but not change, and of one that his change would put where he may not write,
   PermissionDenied.
4. What was readable once and is not now, is not: an old version counts as readable only while the memory as it stands
   is too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dataplane.codec import parse_body
from dataplane.model import EVERYTHING, AllOf, AnyOf, Condition, Filter, Memory, Not, Operator, Scope, State
from dataplane.pipelines.caller import Caller
from memplane.errors import MemoryNotFound, PermissionDenied
from memplane.policy.cells import ALL_CELLS, KINDS, LAYERS, SENSITIVITIES, Box, boxes, cell
from memplane.v1 import memory_pb2

READ = "memory.read"
_STATE_NEEDS = {State.SOFT_DELETED: "memory.forget", State.PENDING_REVIEW: "review", State.QUARANTINED: "review"}


def covers(cells: int, memory: Memory) -> bool:
    """Whether the memory's cell is one of these."""
    if cells in (0, ALL_CELLS):
        return cells != 0
    return bool(cells & cell(memory.layer, memory.kind, parse_body(memory).sensitivity))


def may(caller: Caller, permission: str, memory: Memory) -> bool:
    """Whether the caller has a permission on a memory as it is here."""
    return covers(caller.cells(permission, memory.namespace), memory)


def keep_readable(message: memory_pb2.Memory, caller: Caller) -> None:
    """Leaves of an earlier answer what the caller may still read: what `dataplane.codec.receipt` tells, if no more."""
    cells = caller.cells(READ, message.namespace)
    if cells != ALL_CELLS and not cells & cell(message.layer, message.kind, message.sensitivity):
        left = memory_pb2.Memory(
            id=message.id,
            namespace=message.namespace,
            layer=message.layer,
            state=message.state,
            version=message.version,
            etag=message.etag,
        )
        message.CopyFrom(left)


def hide_references(message: memory_pb2.Memory, caller: Caller) -> memory_pb2.Memory:
    """The memory without the ids of others, unless the caller may read all of its namespace: they may be hidden."""
    if caller.cells(READ, message.namespace) != ALL_CELLS:
        message.ClearField("superseded_by_id")
        message.provenance.ClearField("derived_from_ids")
    return message


def require(caller: Caller, permission: str, memory: Memory) -> None:
    """Raises PermissionDenied unless the caller has a permission on a memory as it would be."""
    if not may(caller, permission, memory):
        raise PermissionDenied(permission, memory.namespace)


def require_found(caller: Caller, permission: str, memory: Memory) -> None:
    """Raises unless the caller has a permission on a memory that was found: rules 2 and 3."""
    if not may(caller, permission, memory):
        if permission == READ or not may(caller, READ, memory):
            raise MemoryNotFound(memory.memory_id, memory.namespace)
        raise PermissionDenied(permission, memory.namespace)


def may_list(caller: Caller, memory: Memory) -> bool:
    """Whether the caller may be shown a memory in a list: forgotten and withheld ones need more than to read."""
    more = _STATE_NEEDS.get(memory.state)
    return may(caller, READ, memory) and (more is None or may(caller, more, memory))


@dataclass(frozen=True, slots=True)
class Sight:
    """What a caller may read of a scope, by namespace. Immutable, made once a question."""

    cells: Mapping[str, int]

    @property
    def is_whole(self) -> bool:
        """Whether no condition narrows it."""
        return all(cells == ALL_CELLS for cells in self.cells.values())

    @property
    def words(self) -> str:
        """Equal for callers who may read the same of the scope, and for no others."""
        return repr(sorted(self.cells.items()))

    def filter(self) -> Filter:
        """What a store can be asked for: the cells that are readable in one namespace at least."""
        together = 0
        for cells in self.cells.values():
            together |= cells
        return filter_of(together)

    def covers(self, memory: Memory) -> bool:
        """Whether the memory is in it."""
        return covers(self.cells.get(memory.namespace, 0), memory)


def sight_of(caller: Caller, scope: Scope) -> Sight:
    """What the caller may read of a scope."""
    return Sight({namespace: caller.cells(READ, namespace) for namespace in (*scope.namespaces, *scope.shared)})


def narrowed(filter: Filter, sight: Filter) -> Filter:
    """Both together."""
    if sight == EVERYTHING:
        return filter
    return sight if filter == EVERYTHING else AllOf((sight, filter))


def filter_of(cells: int) -> Filter:
    """The memories that lie in these cells."""
    if cells == ALL_CELLS:
        return EVERYTHING
    return AnyOf(tuple(AllOf(tuple(_conditions(box))) for box in boxes(cells)))


def _conditions(box: Box) -> Iterator[Filter]:
    if len(box.layers) < len(LAYERS):
        yield Condition("layer", Operator.IN, box.layers)
    if len(box.kinds) < len(KINDS):
        yield Condition("kind", Operator.IN, box.kinds)
    if len(box.sensitivities) < len(SENSITIVITIES):
        yield _of_sensitivity(box.sensitivities)


def _of_sensitivity(names: tuple[str, ...]) -> Filter:
    """A sensitivity that was not assessed is an absent field."""
    assessed = tuple(name for name in names if name != SENSITIVITIES[0])
    absent = Not(Condition("sensitivity", Operator.EXISTS))
    if not assessed:
        return absent
    among = Condition("sensitivity", Operator.IN, assessed)
    return among if assessed == names else AnyOf((absent, among))
