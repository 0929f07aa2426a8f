"""Which drafts of a call cannot change what becomes of each other.

Rules. Two drafts are related when they share a request_id, or, of one subject, the content of a kind or the fact key,
or when they say nearly the same or may contradict each other by the measure of `logic.pairs`. A draft related to an
earlier one waits for that one's outcome. One that is only tried (`validate_only`) goes alone, and so does one for the
shared pool, where a repeat moves a memory from the private one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dataplane.changes import Commit
from dataplane.logic.dedup import MOST_COMPARED
from dataplane.logic.fact_keys import keys_differ
from dataplane.logic.pairs.compare import Relation, relation
from dataplane.logic.pairs.model import PairModel
from dataplane.logic.pairs.reading import Reading, read
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


def unrelated(items: Sequence[Admitted | Refused], pairs: PairModel) -> list[int]:
    """The indexes of those that may go together: related to none before, and not of those that go alone."""
    repeats = _repeats(items, pairs)
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
        if item.fact_asked:
            yield "fact", item.subject, item.fact_asked


def _goes_alone(item: Admitted | Refused) -> bool:
    if item.draft.validate_only or isinstance(item, Refused):
        return item.draft.validate_only
    return item.draft.pool is Pool.SHARED or item.verdict.state is not State.ACTIVE


def _repeats(items: Sequence[Admitted | Refused], pairs: PairModel) -> set[int]:
    """The indexes of drafts that say nearly the same as one before, or contradict it."""
    shelves: dict[Shelf, dict[int, Admitted]] = {}
    for index, item in enumerate(items):
        if isinstance(item, Admitted) and item.policies.write.dedup and item.embedding is not None:
            shelves.setdefault(item.shelf, {})[index] = item
    return {index for shelf in shelves.values() for index in _repeats_among(shelf, pairs)}


def _repeats_among(shelf: dict[int, Admitted], pairs: PairModel) -> Iterable[int]:
    held = list(shelf.items())
    vectors = np.stack([item.embedding for item in shelf.values() if item.embedding is not None])
    cosines = vectors @ vectors.T
    readings = _Readings()
    for row, (index, item) in enumerate(held):
        write = item.policies.write
        least = min(write.dedup_similarity, write.contradiction_similarity)
        near = most_similar(cosines[row, :row], least, item.space.embedder)[:MOST_COMPARED]
        if any(_are_related(item, held[place][1], similarity, readings, pairs) for place, similarity in near):
            yield index


class _Readings(dict[str, Reading]):
    """The reading of each text, made when it is first asked for."""

    def __missing__(self, text: str) -> Reading:
        self[text] = read(text)
        return self[text]


def _are_related(one: Admitted, other: Admitted, similarity: float, readings: _Readings, pairs: PairModel) -> bool:
    if keys_differ(one.draft.fact_key, other.draft.fact_key):
        return False
    told = relation(readings[one.admission.content], readings[other.admission.content], similarity, pairs)
    return told is not Relation.OTHER
