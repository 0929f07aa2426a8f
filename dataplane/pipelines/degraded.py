"""Notes of backends that did not take part in an answer."""

from memplane.v1 import memory_pb2

BACKEND_UNAVAILABLE = "BACKEND_UNAVAILABLE"
"""The reason of a backend that is down, too slow, or that a breaker keeps from being asked."""


class DegradedNotes:
    """Collects each backend once, with what was done instead."""

    def __init__(self) -> None:
        self._notes: dict[str, memory_pb2.Degraded] = {}

    def add(self, backend: str, reason: str, fallback: str) -> None:
        """Notes a backend; the first reason stands."""
        self._notes.setdefault(backend, memory_pb2.Degraded(backend=backend, reason=reason, fallback=fallback))

    def reword(self, fallback: str, *backends: str) -> None:
        """Says anew what was done instead of those of the backends that are noted as down."""
        for backend in backends:
            note = self._notes.get(backend)
            if note is not None and note.reason == BACKEND_UNAVAILABLE:
                note.fallback = fallback

    def any_of(self, *backends: str) -> bool:
        """Whether one of these is noted."""
        return any(backend in self._notes for backend in backends)

    def down(self) -> frozenset[str]:
        """The backends noted as down."""
        return frozenset(name for name, note in self._notes.items() if note.reason == BACKEND_UNAVAILABLE)

    def messages(self) -> list[memory_pb2.Degraded]:
        """What the answer says."""
        return list(self._notes.values())
