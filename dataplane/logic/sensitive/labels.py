"""What a text calls the thing that follows: the words right before it, in both languages.

A label counts within the sentence. What stands between it and the value may be a few words ("is", "ends in", 号码是),
but no other digits. Texts are folded.
"""

import re
from dataclasses import dataclass
from typing import Final

REACH: Final = 48
"""So many characters before a value are read for its label. Unmeasured."""

_ANYTHING: Final = re.compile(r"[^0-9.!?;。！？；\n]*")
_LINK: Final = re.compile(
    r"(?:\s*(?:number|num|no\.?|id|code|#|号码|号|码|is|was|it's|=|是|为|：|:))*\s*[\"'“‘(\[]?\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Label:
    """Words in lower case that name what follows them.

    Words of ASCII stand at a border of words; their right border is free where they end with `~`. `close`: nothing but
    a link (`是`, `: `, ` number is `) may stand between, else anything of the same sentence up to `reach` characters.
    """

    words: tuple[str, ...]
    close: bool = False
    reach: int = 24

    def names(self, text: str, start: int) -> bool:
        """Whether text[start:] is called so."""
        shown = text[max(0, start - REACH) : start].lower()
        return any(self._names(shown, word.rstrip("~"), free=word.endswith("~")) for word in self.words)

    def _names(self, shown: str, word: str, *, free: bool) -> bool:
        place = shown.rfind(word)
        if place < 0:
            return False
        between = shown[place + len(word) :]
        if word[0].isascii() and not _is_border(shown[:place], between, free=free):
            return False
        if self.close:
            return _LINK.fullmatch(between) is not None
        return len(between) <= self.reach and _ANYTHING.fullmatch(between) is not None


def _is_border(left: str, right: str, *, free: bool) -> bool:
    if left and left[-1].isascii() and left[-1].isalnum():
        return False
    return free or not (right and right[0].isascii() and right[0].isalnum()) or right.startswith("s ")


NOT_SENSITIVE: Final = Label(
    (
        "订单", "单号", "流水", "运单", "快递", "物流", "编号", "会议", "会议室", "条码", "条形码", "工单", "版本",
        "货号", "型号", "案号", "热线", "客服电话", "客服", "尾号", "order", "tracking", "invoice", "meeting",
        "reference",
        "ref", "isbn", "isbn-13", "isbn-10", "sku", "serial", "version", "commit", "build", "ticket", "case", "issue",
        "hotline",
        "helpline", "part", "model", "parcel", "shipment", "transaction", "release", "firmware",
    ),
    close=True,
)  # fmt: skip
"""Numbers that are called something harmless are nobody's, whatever their check digits say."""
