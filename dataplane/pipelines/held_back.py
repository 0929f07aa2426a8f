"""Keeps the order within a subject when the record store fails in the midst of a batch.

A draft that the record store could not decide is tried again later: queued, or sent again by its caller. What was said
after it of the same namespace and subject must not be stored before it, so it is not tried either and has the same
outcome: whoever queues the one queues the other behind it.
"""

from typing import Final

from dataplane.model import Draft
from memplane.errors import MemPlaneError, Unavailable

BACKEND: Final = "record_store"


class HeldBack:
    """The subjects of one batch of which something was not decided."""

    def __init__(self) -> None:
        self._subjects: set[tuple[str, str]] = set()

    def note(self, draft: Draft | MemPlaneError, outcome: object) -> None:
        """Takes what became of a draft."""
        is_put_off = isinstance(outcome, Unavailable) and outcome.metadata.get("backend") == BACKEND
        if is_put_off and isinstance(draft, Draft) and not draft.validate_only:
            self._subjects.add((draft.namespace, draft.subject_id))

    def outcome(self, draft: Draft) -> Unavailable | None:
        """The outcome of a draft that must not be tried now; None: it may be."""
        is_held = (draft.namespace, draft.subject_id) in self._subjects and not draft.validate_only
        return Unavailable(BACKEND) if is_held else None
