"""What a text calls the thing that follows: the words right before it, in both languages.

A label counts within the sentence. What stands between it and the value may be a few words ("is", "ends in", 号码是),
but no other digits. Texts are folded.
"""

import re
from typing import Final

REACH: Final = 48
"""So many characters before a value are read for its label. Unmeasured."""

_FILL: Final = r"[^0-9.!?;。！？；\n]{0,%d}$"


def label(words: str, reach: int = 24) -> re.Pattern[str]:
    """A pattern that finds one of the words near the end of what stands before a value."""
    return re.compile(f"(?:{words})" + _FILL % reach, re.IGNORECASE)


def close_label(words: str) -> re.Pattern[str]:
    """The same where nothing but a short link (`是`, `: `, ` number is `) stands between."""
    link = r"(?:\s*(?:number|num|no\.?|id|code|#|号码|号|码|is|was|it's|=|是|为|：|:))*\s*[\"'“‘(\[]?\s*$"
    return re.compile(f"(?:{words}){link}", re.IGNORECASE)


def before(text: str, start: int) -> str:
    """What stands before a value, as far as labels reach."""
    return text[max(0, start - REACH) : start]


NOT_SENSITIVE: Final = close_label(
    r"订单|单号|流水|运单|快递|物流|编号|会议|会议室|条码|条形码|工单|版本|货号|型号|案号|邮编|热线|客服电话|尾号"
    r"|\border|\btracking|\binvoice|\bmeeting|\breference|\bref|\bisbn|\bsku|\bserial|\bversion|\bcommit|\bbuild"
    r"|\bticket|\bcase|\bissue|\bhotline|\bhelpline|\bpart|\bmodel|\bparcel|\bshipment|\btransaction"
)
"""Numbers that are called something harmless are nobody's, whatever their check digits say."""
