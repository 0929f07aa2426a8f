"""One text read once for all the pairs it stands in: its frame, its slots, its words and their order."""

import re
from dataclasses import dataclass

from dataplane.logic.pairs.chinese import chinese_frame, chinese_subject
from dataplane.logic.pairs.english import english_frame, english_subject
from dataplane.logic.pairs.frame import Frame
from dataplane.logic.pairs.values import words_of
from dataplane.logic.slots import Slots, asks, content_words, names_of, plain, poles_of, slots_of
from dataplane.logic.word_order import Order, order_of

LONGEST = 400
"""Characters of a text that can be a plain statement of one fact; longer ones have no frame. Unmeasured."""
_HAN = re.compile(r"[\u3400-\u9fff]")
_UNREAL = re.compile(
    r"\b(?:want(?:s|ed)? to|would like to|plan(?:s|ned|ning)? to|hope(?:s|d)? to|might|maybe|perhaps|may|if|wish(?:es)?"
    r"|dream(?:s|t)? of"
    r"|thinking (?:of|about)|consider(?:s|ing)?|going to|will|could|should)\b"
    r"|想要?(?!念|法)|打算|计划|希望|也许|可能|如果|要是|考虑|准备|将要|应该|本来"
)
_PAST = re.compile(
    r"\b(?:used to|formerly|previously|no longer|any ?more|in the past|once|ex-)\b|以前|曾经?|过去|原来|当年|不再"
)
_HYPHEN = re.compile(r"[^\w\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, NFKC, with its case; `lowered` the same in lower case.

    Attributes:
        who: Of whom it speaks; "" when that does not show.
        words: Stemmed, for their overlap; `told` are those of content in order, `poles` those that have an opposite.
        unreal: It tells what somebody wants, plans or may do.
        past: It tells what was.
    """

    text: str
    lowered: str
    frame: Frame | None
    who: str
    slots: Slots
    words: frozenset[str]
    pairs: frozenset[str]
    order: Order
    names: tuple[str, ...]
    told: tuple[str, ...]
    poles: frozenset[str]
    asks: bool
    unreal: bool
    past: bool


def read(text: str) -> Reading:
    """The reading of a text."""
    text = plain(text)
    lowered = text.lower()
    chinese = _HAN.search(text) is not None
    short = text[:LONGEST]
    frame = (chinese_frame(short) if chinese else english_frame(short)) if len(text) <= LONGEST else None
    squeezed = _HYPHEN.sub(" ", lowered)
    return Reading(
        text=text,
        lowered=lowered,
        frame=frame,
        who=frame.who if frame is not None else chinese_subject(short) if chinese else english_subject(short),
        slots=slots_of(text),
        words=words_of(lowered),
        pairs=frozenset(squeezed[at : at + 2] for at in range(len(squeezed) - 1)),
        order=order_of(lowered),
        names=tuple(names_of(text)),
        told=tuple(content_words(text)),
        poles=poles_of(lowered),
        asks=asks(lowered),
        unreal=_UNREAL.search(lowered) is not None,
        past=_PAST.search(lowered) is not None,
    )
