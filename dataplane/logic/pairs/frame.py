"""A frame: one plain statement taken apart into who, attribute and value.

"My sister lives in Leeds" and "我妹妹的家在利兹" are (self.sister, lives, Leeds). Only short statements of one fact
have one; everything else has none, and is compared by its words alone.
"""

from dataclasses import dataclass
from enum import IntEnum


class Arity(IntEnum):
    """How many values an attribute has at a time."""

    ONE = 1
    USUALLY_ONE = 2
    MANY = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """What a statement says. `holds` is False when it says that the value is not so; `whole`: it says nothing else.

    `who` is "self", a name in lower case, or a relation such as "self.sister". `value` is in lower case.
    """

    who: str
    attribute: str
    arity: Arity
    value: str
    holds: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute by name and arity, as the tables of patterns have it."""

    name: str
    arity: Arity
