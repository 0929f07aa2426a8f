"""Notes of backends that did not take part in an answer."""

from memplane.v1 import memory_pb2


class DegradedNotes:
    """Collects each backend once, with what was done instead."""

    def __init__(self) -> None:
        self._notes: dict[str, memory_pb2.Degraded] = {}

    def add(self, backend: str, reason: str, fallback: str) -> None:
        """Notes a backend; the first reason stands."""
        self._notes.setdefault(backend, memory_pb2.Degraded(backend=backend, reason=reason, fallback=fallback))

    def any_of(self, *backends: str) -> bool:
        """Whether one of these is noted."""
        return any(backend in self._notes for backend in backends)

    def messages(self) -> list[memory_pb2.Degraded]:
        """What the answer says."""
        return list(self._notes.values())
