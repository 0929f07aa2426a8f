"""When a memory's time is up: from then on it is found by nothing, until it is said again."""

from dataplane.model import Memory


def has_expired(memory: Memory, at_us: int) -> bool:
    """Whether `expire_time` lies at or before an instant."""
    return memory.expire_time_us is not None and memory.expire_time_us <= at_us
