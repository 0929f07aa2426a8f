"""Fact keys read off a text: which fact "My favourite colour is blue" states, so that another value contradicts it.

    auto:<kind>:<who>:<attribute>          auto:fact:self:favourite colour

Only a short statement of nothing but one fact has one: with an attribute of one value at a time (`Arity.ONE`), of
somebody who is named or is the speaker, as it is now: not as it was, might be, or is asked. A key that a caller gives
outranks a derived one, and the two never differ.
"""

from typing import NamedTuple

from dataplane.logic.pairs.frame import Arity
from dataplane.logic.pairs.reading import LONGEST, Reading, read
from dataplane.model import Draft, Kind, Layer

PREFIX = "auto:"
MAX_KEY = 200
"""Characters; a longer one is of no plain statement. Unmeasured."""
_KINDS = frozenset({Kind.FACT, Kind.PREFERENCE})
UNNAMED = frozenset({"", "it", "he", "she", "they", "we"})
"""Of whom nobody knows who it is when the conversation is over."""


class Derived(NamedTuple):
    """The key of the fact that a text states; `holds` False: it denies the fact. "" for none."""

    key: str
    holds: bool


NOTHING = Derived("", holds=True)


def derive(draft: Draft, content: str, layer: Layer) -> Derived:
    """The key of what a draft without one states with `content`. Working memory and episodes have none."""
    if draft.kind not in _KINDS or layer is Layer.WORKING or len(content) > LONGEST:
        return NOTHING
    return derived_from(content, draft.kind, draft.speaker)


def derived_from(content: str, kind: Kind, speaker: str) -> Derived:
    """The key of what a text of a kind says; whoever is "self" is the speaker, when known."""
    reading = read(content)
    frame = reading.frame
    if frame is None or frame.arity is not Arity.ONE or not is_plain(reading):
        return NOTHING
    first, *others = frame.who.split(".")
    who = ".".join([speaker.strip().casefold() if first == "self" and speaker.strip() else first, *others])
    key = f"{PREFIX}{kind.name.lower()}:{who}:{frame.attribute}"
    return Derived(key, frame.holds) if len(key) <= MAX_KEY else NOTHING


def is_plain(reading: Reading) -> bool:
    """Whether a text says one thing, of somebody known, as it is now."""
    frame = reading.frame
    if frame is None or not frame.whole or frame.who.split(".")[0] in UNNAMED:
        return False
    return not reading.unreal and not reading.asks and (not reading.past or not frame.holds)


def is_derived(key: str) -> bool:
    """Whether nobody gave the key."""
    return key.startswith(PREFIX)


def keys_differ(one: str, other: str) -> bool:
    """Whether two keys, "" for none, are of two facts; one given and one derived may be of the same."""
    return bool(one and other) and one != other and is_derived(one) == is_derived(other)


def weightier(new: str, old: str) -> str:
    """The key that a memory keeps of two: a given one before a derived one, the new before the old."""
    return new if new and (not is_derived(new) or not old or is_derived(old)) else old
