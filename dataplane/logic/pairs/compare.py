"""What two texts are to each other: the trained combiner's opinion, and what rules leave of it.

Rules. A repeat is what the combiner calls one and no slot contradicts: two plain statements of one attribute with one
value, in whatever words; else texts that neither a slot nor word order tells apart. A contradiction is what the combiner
calls one; it is *certain* between two plain statements about the same person and attribute where one value excludes the
other, or one denies what the other states.
"""

from enum import Enum

from dataplane.logic.fact_keys import is_plain
from dataplane.logic.pairs.features import features, likeness
from dataplane.logic.pairs.frame import Arity
from dataplane.logic.pairs.model import PairModel
from dataplane.logic.pairs.reading import Reading
from dataplane.logic.pairs.values import Likeness
from dataplane.logic.slots import are_opposed, both_ask, cases_within, is_substitution, names_within
from dataplane.logic.word_order import are_aligned

DUPLICATE, CONFLICT = 0.5, 0.5
"""Probabilities from which a pair is one: more likely than not."""


class Relation(Enum):
    """What a text is to another one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    MAY_CONTRADICT = "may contradict"
    OTHER = "other"


def relation(a: Reading, b: Reading, similarity: float, model: PairModel) -> Relation:
    """What the texts are to each other; `similarity` calibrated, 0 to 1. Symmetric."""
    if a.text == b.text:
        return Relation.SAME
    scores = model.scores(features(a, b, similarity))
    if scores.duplicate >= DUPLICATE and says_the_same(a, b):
        return Relation.SAME
    if scores.conflict < CONFLICT:
        return Relation.OTHER
    return Relation.CONTRADICTS if exclude_each_other(a, b) else Relation.MAY_CONTRADICT


def says_the_same(a: Reading, b: Reading) -> bool:
    """True when no slot and no word order tells the texts apart. Symmetric; of texts not near it says nothing."""
    if a.text == b.text:
        return True
    if not both_ask(a.text, b.text) or a.unreal != b.unreal or not _in_one_case(a, b):
        return False
    if _are_one_fact(a, b):
        return a.past == b.past
    return (
        a.slots == b.slots
        and not are_opposed(a.text, b.text)
        and are_aligned(a.order, b.order)
        and names_within(a.text, b.text)
        and names_within(b.text, a.text)
        and not is_substitution(a.text, b.text)
    )


def exclude_each_other(a: Reading, b: Reading) -> bool:
    """True when the texts state one attribute of one person so that only one of them can be right."""
    one, other = a.frame, b.frame
    if one is None or other is None or one.who != other.who or not is_plain(a) or not is_plain(b):
        return False
    found = likeness(one, other)
    if one.holds != other.holds:
        return found is Likeness.SAME
    return one.holds and found is Likeness.OTHER and max(one.arity, other.arity) is Arity.ONE


def _in_one_case(a: Reading, b: Reading) -> bool:
    return cases_within(a.text, b.text) and cases_within(b.text, a.text)


def _are_one_fact(a: Reading, b: Reading) -> bool:
    """Whether both say one thing, and that the same, in whatever words."""
    one, other = a.frame, b.frame
    if one is None or other is None or not one.whole or not other.whole:
        return False
    same = one.who == other.who and one.holds == other.holds
    return same and likeness(one, other) is Likeness.SAME
