"""What two texts are to each other: the trained combiner's opinion, and what rules leave of it.

Rules. A repeat is what the combiner calls one and no slot contradicts: two plain statements of one attribute with one
value, in whatever words; else texts that neither a slot nor word order tells apart. A contradiction is what the
combiner calls one; it is certain between two plain statements about the same person and attribute where one value
excludes the other, or one denies what the other states.
"""

from enum import Enum

from dataplane.logic.pairs.features import all_within, are_one_fact, exclude_each_other, features
from dataplane.logic.pairs.model import PairModel
from dataplane.logic.pairs.reading import Reading
from dataplane.logic.slots import both_ask, cases_within, one_differs, poles_differ
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
    if (a.asks != b.asks and not both_ask(a.text, b.text)) or a.unreal != b.unreal or not _in_one_case(a, b):
        return False
    if are_one_fact(a, b):
        return True
    return (
        a.slots == b.slots
        and not poles_differ(a.poles, b.poles)
        and are_aligned(a.order, b.order)
        and all_within(a, b)
        and all_within(b, a)
        and not one_differs(a.told, b.told)
    )


def _in_one_case(a: Reading, b: Reading) -> bool:
    return cases_within(a.text, b.text) and cases_within(b.text, a.text)
