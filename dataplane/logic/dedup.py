"""Whether a memory of the same meaning is there already, and which one a new statement contradicts.

Similar is not the same: "born on 5 February" and "born on 5 March" are neighbours for every embedding. So similarity
only finds whom to ask about: a neighbour at least `dedup_similarity` near is a duplicate, one at least
`contradiction_similarity` near is contradicted, when `logic.pairs` says so. That leaves a true paraphrase now and then
beside its twin, which costs less than swallowing a contradiction. Two different fact keys never merge, nor does
anything when the policy's `dedup` is off.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.logic.fact_keys import keys_differ
from dataplane.logic.pairs import compare
from dataplane.logic.pairs.compare import Relation, relation
from dataplane.logic.pairs.model import PairModel
from dataplane.logic.pairs.reading import read
from dataplane.model import Memory
from memplane.policy.model import WritePolicy

MOST_COMPARED = 16
"""How many of the nearest neighbours are asked about; what repeats or contradicts is among the nearest. Unmeasured."""

_CONTRADICTED = frozenset({Relation.CONTRADICTS, Relation.MAY_CONTRADICT})


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory near to a draft, with its content and the calibrated similarity, 0 to 1."""

    memory: Memory
    content: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Met:
    """A neighbour, and what the new statement is to it."""

    neighbour: Neighbour
    relation: Relation


def find_met(
    content: str, fact_key: str, neighbours: Sequence[Neighbour], policy: WritePolicy, model: PairModel
) -> Met | None:
    """The most similar neighbour that says the same, else the most similar that is contradicted; None for neither.

    Ties by memory id. One that is certainly contradicted comes before one that may be.
    """
    least = min(policy.dedup_similarity, policy.contradiction_similarity)
    near = sorted(
        (item for item in neighbours if item.similarity >= least),
        key=lambda found: (-found.similarity, found.memory.memory_id),
    )[:MOST_COMPARED]
    if not policy.dedup or not near:
        return None
    said = read(content)
    contradicted: dict[Relation, Met] = {}
    for item in near:
        if keys_differ(fact_key, item.memory.fact_key):
            continue
        found = relation(said, read(item.content), item.similarity, model)
        if found is Relation.SAME and item.similarity >= policy.dedup_similarity:
            return Met(item, found)
        if found in _CONTRADICTED and item.similarity >= policy.contradiction_similarity:
            contradicted.setdefault(found, Met(item, found))
    return contradicted.get(Relation.CONTRADICTS) or contradicted.get(Relation.MAY_CONTRADICT)


def says_the_same(a: str, b: str) -> bool:
    """True when neither a slot nor word order tells the texts apart. Symmetric; of texts not near it says nothing."""
    return a == b or compare.says_the_same(read(a), read(b))
