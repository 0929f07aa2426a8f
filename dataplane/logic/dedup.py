"""Whether a memory of the same meaning is there already.

Similar is not the same: "born on 5 February" and "born on 5 March" are neighbours for every embedding. So a neighbour
above `dedup_similarity` is a duplicate only when neither a slot of `logic.slots` nor the word order of
`logic.word_order` tells the two texts apart. That leaves a true paraphrase now and then beside its twin, which costs
less than swallowing a contradiction. Two different fact keys never merge, nor does anything when the policy's `dedup`
is off.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.logic.slots import are_opposed, both_ask, cases_within, is_substitution, names_within, slots_of
from dataplane.logic.word_order import in_same_order
from dataplane.model import Memory
from memplane.policy.model import WritePolicy


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory near to a draft, with its content and the calibrated similarity, 0 to 1."""

    memory: Memory
    content: str
    similarity: float


def find_same(content: str, fact_key: str, neighbours: Sequence[Neighbour], policy: WritePolicy) -> Neighbour | None:
    """The most similar neighbour that says the same; ties by memory id. None when there is none or dedup is off."""
    if not policy.dedup:
        return None
    near = [neighbour for neighbour in neighbours if neighbour.similarity >= policy.dedup_similarity]
    for neighbour in sorted(near, key=lambda found: (-found.similarity, found.memory.memory_id)):
        if may_merge((content, fact_key), (neighbour.content, neighbour.memory.fact_key)):
            return neighbour
    return None


def may_merge(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two (content, fact key) that are near say the same, of no two facts. Symmetric."""
    (content, fact_key), (other_content, other_key) = one, other
    keys_differ = bool(fact_key and other_key and fact_key != other_key)
    return not keys_differ and says_the_same(content, other_content)


def says_the_same(a: str, b: str) -> bool:
    """True when neither a slot nor word order tells the texts apart. Symmetric; of texts not near it says nothing."""
    if a == b:
        return True
    return (
        slots_of(a) == slots_of(b)
        and both_ask(a, b)
        and not are_opposed(a, b)
        and in_same_order(a, b)
        and cases_within(a, b)
        and cases_within(b, a)
        and names_within(a, b)
        and names_within(b, a)
        and not is_substitution(a, b)
    )
