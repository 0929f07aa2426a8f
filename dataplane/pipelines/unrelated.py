"""Which drafts of a call cannot change what becomes of each other.

Rules. Two drafts are related when they share a request_id, or, of one subject, the content of a kind or the fact key,
or when they say nearly the same by the measure of `logic.dedup`. A draft related to an earlier one waits for that one's
outcome. One that is only tried (`validate_only`) goes alone, and so does one for the shared pool, where a repeat moves
a memory from the private one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dataplane.changes import Commit
from dataplane.logic.dedup import may_merge
from dataplane.model import Draft, Pool, State
from dataplane.pipelines.neighbours import Shelf, most_similar
from dataplane.pipelines.plans import Admitted
from memplane.v1 import memory_service_pb2


@dataclass(frozen=True, slots=True)
class Refused:
    """A draft that the gate refused: the answer, and the commit that logs it."""

    draft: Draft
    response: memory_service_pb2.WriteMemoryResponse
    commit: Commit


def unrelated(items: Sequence[Admitted | Refused]) -> list[int]:
    """The indexes of those that may go together: related to none before, and not of those that go alone."""
    repeats = _repeats(items)
    seen: set[tuple[object, ...]] = set()
    free: list[int] = []
    for index, item in enumerate(items):
        keys = set(_keys(item))
        if index not in repeats and seen.isdisjoint(keys) and not _goes_alone(item):
            free.append(index)
        seen |= keys
    return free


def _keys(item: Admitted | Refused) -> Iterator[tuple[object, ...]]:
    """What related items have in common."""
    draft = item.draft
    if draft.request_id:
        yield "request", draft.request_id
    if isinstance(item, Admitted):
        yield "content", item.content
        if draft.fact_key:
            yield "fact", item.subject, draft.fact_key


def _goes_alone(item: Admitted | Refused) -> bool:
    if item.draft.validate_only or isinstance(item, Refused):
        return item.draft.validate_only
    return item.draft.pool is Pool.SHARED or item.verdict.state is not State.ACTIVE


def _repeats(items: Sequence[Admitted | Refused]) -> set[int]:
    """The indexes of drafts that say nearly the same as one before."""
    shelves: dict[Shelf, dict[int, Admitted]] = {}
    for index, item in enumerate(items):
        if isinstance(item, Admitted) and item.policies.write.dedup and item.embedding is not None:
            shelves.setdefault(item.shelf, {})[index] = item
    return {index for shelf in shelves.values() for index in _repeats_among(shelf)}


def _repeats_among(shelf: dict[int, Admitted]) -> Iterable[int]:
    held = list(shelf.items())
    vectors = np.stack([item.embedding for item in shelf.values() if item.embedding is not None])
    cosines = vectors @ vectors.T
    for row, (index, item) in enumerate(held):
        near = most_similar(cosines[row, :row], item.policies.write.dedup_similarity, item.space.embedder)
        if any(may_merge(_told(item), _told(held[place][1])) for place, _ in near):
            yield index


def _told(item: Admitted) -> tuple[str, str]:
    return item.admission.content, item.draft.fact_key
