"""What tells a repeat, a contradiction and two different facts apart, as numbers that a model can weigh.

Every feature is symmetric in the two texts and lies in 0 to 1. `FEATURES` names them in order.
"""

from collections.abc import Set as AbstractSet

from dataplane.logic.fact_keys import is_plain
from dataplane.logic.pairs.frame import Arity
from dataplane.logic.pairs.reading import Reading
from dataplane.logic.pairs.values import Likeness, compare_values
from dataplane.logic.slots import both_ask, cases_within, one_differs, poles_differ
from dataplane.logic.word_order import are_aligned

FEATURES = (
    "similarity", "words_shared", "words_within", "pairs_shared", "length_ratio",
    "who_same", "who_differ", "who_unclear",
    "frames", "frame_of_one", "attribute_same", "attribute_differs",
    "one_value", "usually_one_value", "many_values",
    "value_same", "value_within", "value_partly", "value_other",
    "holds_differ", "both_deny", "whole",
    "numbers_same", "numbers_differ", "numbers_of_one", "identifiers_differ", "people_differ", "names_differ",
    "negation_differs", "opposed", "order_differs", "signs_differ", "asks_differ", "degrees_differ", "substitution",
    "case_differs", "unreal_differs", "past_differs", "one_fact", "excluded",
)  # fmt: skip


def features(a: Reading, b: Reading, similarity: float) -> list[float]:
    """The features of a pair in the order of FEATURES; `similarity` calibrated, 0 to 1.

    Where both texts state one fact and nothing else, what they state decides, however alike the words are.
    """
    framed = a.frame is not None and b.frame is not None and a.frame.whole and b.frame.whole
    found = _likeness(a, b)
    told = [*_overlap(a, b), *_who(a, b), *_frames(a, b, found), *_slots(a, b), *_turns(a, b)]
    facts = [float(_are_one_fact(a, b, found)), float(_exclude_each_other(a, b, found))]
    return [1.0 if framed else similarity, *told, *facts]


def _overlap(a: Reading, b: Reading) -> list[float]:
    shared, least = len(a.words & b.words), min(len(a.words), len(b.words))
    lengths = sorted((len(a.text), len(b.text)))
    return [
        _share(2 * shared, len(a.words) + len(b.words)),
        _share(shared, least),
        _share(2 * len(a.pairs & b.pairs), len(a.pairs) + len(b.pairs)),
        _share(lengths[0], lengths[1]),
    ]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _who(a: Reading, b: Reading) -> list[float]:
    unclear = not a.who or not b.who
    same = a.who == b.who and not unclear
    return [float(same), float(not same and not unclear), float(unclear)]


def _frames(a: Reading, b: Reading, found: Likeness | None) -> list[float]:
    one, other = a.frame, b.frame
    if one is None or other is None:
        return [0.0, float((one is None) != (other is None)), *[0.0] * 12]
    same = one.attribute == other.attribute
    arities = [float(same and max(one.arity, other.arity) is arity) for arity in Arity]
    values = [float(found is wanted) for wanted in (Likeness.SAME, Likeness.WITHIN, Likeness.PARTLY, Likeness.OTHER)]
    holds = [float(one.holds != other.holds), float(not one.holds and not other.holds)]
    return [1.0, 0.0, float(same), float(not same), *arities, *values, *holds, float(one.whole and other.whole)]


def _likeness(a: Reading, b: Reading) -> Likeness | None:
    """How the values of the frames stand to each other; None when they are not of one attribute."""
    one, other = a.frame, b.frame
    if one is None or other is None or one.attribute != other.attribute:
        return None
    return compare_values(one.attribute, one.value, other.value)


def _slots(a: Reading, b: Reading) -> list[float]:
    one, other = a.slots, b.slots
    return [
        float(bool(one.numbers) and one.numbers == other.numbers),
        float(_contradict(one.numbers, other.numbers)),
        float(bool(one.numbers) != bool(other.numbers) or _within(one.numbers, other.numbers)),
        float(one.identifiers != other.identifiers),
        float(one.people != other.people),
        float(not all_within(a, b) or not all_within(b, a)),
        float(one.negated != other.negated),
    ]


def _contradict(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    return bool(one - other) and bool(other - one)


def _within(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    return one != other and (one < other or other < one) and bool(one) and bool(other)


def _turns(a: Reading, b: Reading) -> list[float]:
    return [
        float(poles_differ(a.poles, b.poles)),
        float(not are_aligned(a.order, b.order)),
        float(a.slots.signs != b.slots.signs),
        float(a.asks != b.asks and not both_ask(a.text, b.text)),
        float(a.slots.degrees != b.slots.degrees),
        float(one_differs(a.told, b.told)),
        float(not cases_within(a.text, b.text) or not cases_within(b.text, a.text)),
        float(a.unreal != b.unreal),
        float(a.past != b.past),
    ]


def all_within(a: Reading, b: Reading) -> bool:
    """Whether every name in `a` stands somewhere in `b`."""
    return all(name in b.lowered for name in a.names)


def are_one_fact(a: Reading, b: Reading) -> bool:
    """Whether both say one thing, and that the same, in whatever words."""
    return _are_one_fact(a, b, _likeness(a, b))


def exclude_each_other(a: Reading, b: Reading) -> bool:
    """Whether both state one attribute of one person so that only one of them can be right."""
    return _exclude_each_other(a, b, _likeness(a, b))


def _are_one_fact(a: Reading, b: Reading, found: Likeness | None) -> bool:
    one, other = a.frame, b.frame
    if one is None or other is None or not one.whole or not other.whole:
        return False
    same = one.who == other.who and one.holds == other.holds and a.unreal == b.unreal and a.past == b.past
    return same and found is Likeness.SAME


def _exclude_each_other(a: Reading, b: Reading, found: Likeness | None) -> bool:
    one, other = a.frame, b.frame
    if one is None or other is None or one.who != other.who or not is_plain(a) or not is_plain(b):
        return False
    if one.holds != other.holds:
        return found is Likeness.SAME
    return one.holds and found is Likeness.OTHER and max(one.arity, other.arity) is Arity.ONE
