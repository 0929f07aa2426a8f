"""Phone numbers: mobiles and landlines of China, those of North America, and others by `+` or by name.

A Chinese mobile has eleven digits and begins with 13 to 19; a North American exchange begins
with 2 to 9 (NANP), and toll-free area codes are nobody's own. Patterns have bounded repeats only and begin at a border
of digits, so that the work is linear.
"""

import re
from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded
from dataplane.logic.sensitive.labels import NOT_SENSITIVE, Label

_LEFT: Final = r"(?<![0-9A-Za-z_*])(?<![0-9][.])(?<![*][ .\-])"
_RIGHT: Final = r"(?![0-9A-Za-z_*])(?![.-][0-9])"
_TOLL_FREE: Final = r"(?!400|8(?:00|33|44|55|66|77|88)|900)"
_SEP: Final = r"[ .\-]{0,3}"

_MOBILE: Final = r"1[3-9][0-9]"
_MOBILE_CN: Final = re.compile(
    rf"{_LEFT}(?:(?:(?:\+|00)?86|\((?:\+|00)86\)){_SEP})?{_MOBILE}(?:[0-9]{{8}}"
    r"|(?P<sep> - |[ .\-])(?:[0-9]{4}(?P=sep)[0-9]{4}|[0-9](?P=sep)[0-9]{3}(?P=sep)[0-9]{4}"
    r"|[0-9]{3}(?P=sep)[0-9]{5}|[0-9]{8}))"
    rf"{_RIGHT}"
)
_MOBILE_LOOSE: Final = re.compile(rf"{_LEFT}1(?:[ .\-]?[0-9]){{10}}{_RIGHT}")
_MOBILE_DIGITS: Final = re.compile(_MOBILE)
_LANDLINE_CN: Final = re.compile(
    rf"{_LEFT}(?:\(?\+?86\)?[ \-]?)?(?:\(0[0-9]{{2,3}}\) ?|0(?:10|2[0-9])[\- ]|0[3-9][0-9]{{2}}-)"
    rf"[2-8][0-9]{{2,3}}[ \-]?[0-9]{{4}}(?:(?:-|转|ext\.? ?)[0-9]{{1,5}})?{_RIGHT}"
)
_AREA_CN: Final = re.compile(r"\(?(?:010|02[0-9]|0[3-9][0-9]{2})\)?[\- ]?[2-8][0-9 \-]{6,9}")

_US: Final = re.compile(
    rf"{_LEFT}(?:(?P<country>\+1|001|1)[-. ]?)?"
    rf"(?:(?P<area>\([2-9][0-9]{{2}}\))[ \-.]?|{_TOLL_FREE}[2-9][0-9]{{2}}[-. ])"
    rf"(?P<exchange>[0-9]{{3}})[-. ][0-9]{{4}}(?:\ ?(?:x|ext\.?|#)\ ?[0-9]{{1,6}})?{_RIGHT}",
    re.IGNORECASE,
)
_US_COMPACT: Final = re.compile(rf"{_LEFT}\+1[2-9][0-9]{{2}}[2-9][0-9]{{6}}{_RIGHT}")

_INTERNATIONAL: Final = re.compile(
    rf"(?<![0-9A-Za-z_*+])(?<![*][ .\-])(?:\+|00)[1-9][0-9]{{0,2}}(?:[ .\-]?\(0?[0-9]{{0,4}}\))?"
    rf"(?:[ .\-]{{0,2}}[0-9]{{1,12}}){{1,7}}"
    rf"(?:\ ?(?:x|ext\.?)\ ?[0-9]{{1,6}})?{_RIGHT}",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(
    rf"{_LEFT}[(+]?[0-9](?:[ ().\-/]{{0,3}}[0-9]){{5,16}}(?:\ ?(?:x|ext\.?|转)\ ?[0-9]{{1,6}})?(?![0-9A-Za-z_*])",
    re.IGNORECASE,
)
_NAME: Final = Label(
    (
        "电话", "手机", "联系方式", "联系号码", "座机", "传真", "固话", "phone", "phones", "telephone", "tel", "mobile",
        "cell",
        "cellphone", "fax", "desk", "call me", "call us", "call him", "call her", "call them", "text me", "text us",
        "text him", "text her", "reach me", "reach him", "reach her", "reach us", "reached at", "reached on",
        "contact me",
        "contacted at", "contacted on", "contact number", "contact at", "messages to", "messages at", "messages on",
        "message to", "message at", "whatsapp", "dial", "dialed", "handset", "sms", "my number",
        "new number", "his number", "her number", "our number", "their number", "ring me", "打我", "拨打", "致电",
    )
)  # fmt: skip
_AFTER: Final = re.compile(r"\ (?:office|fax|mobile|cell|home|work|desk)\b", re.IGNORECASE)
_TOLL_FREE_NUMBER: Final = re.compile(r"(?:00)?1?(?:400|8(?:00|33|44|55|66|77|88)|900)[0-9]{7}$")
_DATE: Final = re.compile(
    r"(?:19|20)[0-9]{2}[-/. ](?:0?[1-9]|1[0-2])[-/. ](?:[0-3]?[0-9])\b"
    r"|[0-3]?[0-9][/.][0-1]?[0-9][/.](?:19|20)[0-9]{2}\b"
)


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    yield from _chinese(text)
    yield from _american(text)
    if "+" in text or "00" in text:
        for match in _INTERNATIONAL.finditer(text):
            if 9 <= _size(match[0]) <= 15 and (match[0][0] == "+" or _is_grouped(match[0])):
                yield Finding("PHONE", match.start(), match.end())
    yield from _named(text)


def _chinese(text: str) -> Iterator[Finding]:
    for pattern in (_MOBILE_CN, _LANDLINE_CN):
        for match in pattern.finditer(text):
            if not NOT_SENSITIVE.names(text, match.start()):
                yield Finding("PHONE_CN", match.start(), match.end(), 2)
    for match in _MOBILE_LOOSE.finditer(text):
        digits = _digits(match[0])
        if _MOBILE_DIGITS.match(digits) and len(match[0]) == 21 and len(set(match[0][1::2])) == 1:
            yield Finding("PHONE_CN", match.start(), match.end(), 1)


def _american(text: str) -> Iterator[Finding]:
    for match in _US.finditer(text):
        real = match["exchange"][0] in "23456789" or match["country"] in {"+1", "001"} or match["area"]
        if real and not NOT_SENSITIVE.names(text, match.start()):
            yield Finding("PHONE_US", match.start(), match.end(), 2)
    for match in _US_COMPACT.finditer(text):
        yield Finding("PHONE_US", match.start(), match.end(), 2)


def _named(text: str) -> Iterator[Finding]:
    """Numbers of 7 to 18 digits that are called a phone's, before or after; a date is none."""
    for match in _NUMBER.finditer(text):
        start, number = match.start(), match[0]
        if not 7 <= _size(number) <= 18 or _DATE.match(number) or _TOLL_FREE_NUMBER.match(_digits(number)):
            continue
        if _NAME.names(text, start) or _AFTER.match(text, match.end()):
            start += number[0] == "(" and ")" not in number
            yield Finding(_type_of(text[start : match.end()]), start, match.end())


def _type_of(number: str) -> str:
    digits = _digits(number)
    if (len(digits) == 11 and _MOBILE_DIGITS.match(digits)) or _AREA_CN.fullmatch(number):
        return "PHONE_CN"
    return "PHONE"


def _is_grouped(number: str) -> bool:
    """Whether a number that begins with 00 has the separators that tell it from any other number."""
    return sum(letter in " .-(" for letter in number) >= 2


def _digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isdecimal())


def _size(text: str) -> int:
    return sum(letter.isdecimal() for letter in text)
