"""What every record store does alike: what it refuses to be asked, and what a commit makes of the memories in it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dataplane.changes import Commit, Supersession
from dataplane.model import FieldValue, Memory, State

FieldsOf = Callable[[Memory], Mapping[str, FieldValue]]
"""What filters see of a memory."""


def check(commit: Commit) -> None:
    """Raises ValueError for a commit that no caller may make: that is a bug above, not a state of the store."""
    memory = commit.memory
    if memory is None:
        return
    if not commit.scope.covers(memory.namespace, memory.pool):
        raise ValueError(f"memory {memory.memory_id} of {memory.namespace} lies outside its commit's scope")
    if memory.version < max(1, commit.expected_version):
        raise ValueError(f"memory {memory.memory_id}: version {memory.version} is below {commit.expected_version}")


def superseded(memory: Memory, supersession: Supersession, commit: Commit) -> Memory:
    """The next version of a memory that a commit supersedes. Its body stays that of the version before."""
    return replace(
        memory,
        state=State.SUPERSEDED,
        version=memory.version + 1,
        update_time_us=commit.now_us,
        valid_to_us=supersession.valid_to_us,
        superseded_by_id=commit.memory.memory_id if commit.memory else "",
    )


def reinforced(memory: Memory, changed: Memory) -> Memory:
    """The same version of a memory with the changing fields of `changed`; its other fields stay."""
    return replace(
        memory,
        state=changed.state,
        valid_to_us=changed.valid_to_us,
        superseded_by_id=changed.superseded_by_id,
        strength=changed.strength,
        strength_time_us=changed.strength_time_us,
        access_count=changed.access_count,
        last_access_time_us=changed.last_access_time_us,
    )


def spoken_of(commit: Commit) -> frozenset[str]:
    """The memories that the stored answer to a commit may name."""
    ids = {commit.memory.memory_id} if commit.memory else set()
    ids.update(supersession.memory_id for supersession in commit.supersedes)
    for conflict in commit.conflicts:
        ids.update((conflict.winner_id, conflict.loser_id))
    return frozenset(ids)
