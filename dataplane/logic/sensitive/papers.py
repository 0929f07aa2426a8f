"""Numbers with letters in them: company codes, passports, plates, licences, IBANs, and ids of chat services."""

import re
from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive import checksums
from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded
from dataplane.logic.sensitive.labels import Label

_LEFT: Final = r"(?<![0-9A-Za-z_*])"
_RIGHT: Final = r"(?![0-9A-Za-z_*])"

_USCC: Final = re.compile(
    rf"{_LEFT}[0-9A-HJ-NPQRTUWXY]{{2}}[ \-]?[0-9]{{6}}[ \-]?[0-9A-HJ-NPQRTUWXY]{{9}}[ \-]?[0-9A-HJ-NPQRTUWXY]{_RIGHT}",
    re.IGNORECASE,
)
_COMPANY: Final = Label(("信用代码", "税号", "纳税人", "统一代码", "社会信用", "uscc", "credit code"))
_PASSPORT_CN: Final = re.compile(rf"{_LEFT}(?:E[A-HJ-NP-Z]|[DEGPSH])[ \-]?[0-9]{{7,8}}{_RIGHT}", re.IGNORECASE)
_PASSPORT: Final = re.compile(rf"{_LEFT}(?=[A-Z0-9]{{0,3}}[0-9]{{5}})[A-Z0-9]{{6,10}}{_RIGHT}", re.IGNORECASE)
_IS_PASSPORT: Final = Label(("护照", "通行证", "passport"))
_PLATE: Final = re.compile(
    r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-NP-Z][·•.\- ]?"
    rf"[A-HJ-NP-Z0-9]{{4}}(?:[A-HJ-NP-Z0-9]{{1,2}}|[挂学警港澳领使]){_RIGHT}",
    re.IGNORECASE,
)
_IS_PLATE: Final = Label(("车牌", "牌照", "plate", "license plate"))
_IBAN_HEAD: Final = re.compile(rf"{_LEFT}[A-Z]{{2}}[0-9]{{2}}(?=[ \-]?[A-Z0-9])", re.IGNORECASE)
_LICENSE: Final = re.compile(
    rf"{_LEFT}(?=[A-Z0-9\-* ]{{0,3}}[0-9]{{2}})[A-Z0-9](?:-?[A-Z0-9]){{4,19}}{_RIGHT}", re.IGNORECASE
)
_IS_LICENSE: Final = Label(
    (
        "driver's license",
        "drivers license",
        "driver license",
        "driver's licence",
        "driving licence",
        "driving license",
        "license number",
        "licence number",
    )
)
_WECHAT: Final = re.compile(
    r"(?:微信号?|\bwechat(?: id)?|\bweixin)(?:号|账号)?\s{0,2}(?:就是|是|为|：|:|is|=)?\s{0,2}"
    r"(?P<value>[A-Za-z][A-Za-z0-9_\-]{5,19})" + _RIGHT,
    re.IGNORECASE,
)
_PIECE: Final = re.compile(r"[A-Z0-9]", re.IGNORECASE)


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    if folded.digits >= 8:
        yield from _companies(text)
        yield from _ibans(text)
    if folded.digits >= 4 and folded.says(("护照", "通行证", "passport")):
        yield from _passports(text)
    if folded.digits >= 4 and folded.says(("licen",)):
        yield from _licenses(text)
    if not text.isascii():
        yield from _plates(text)
    if folded.says(("微信", "wechat", "weixin")):
        yield from _wechat_ids(text)


def _plates(text: str) -> Iterator[Finding]:
    """Five or six characters behind province and city, with a digit among them where they are not called a plate."""
    for match in _PLATE.finditer(text):
        if any(letter.isdecimal() for letter in match[0]) or _IS_PLATE.names(text, match.start()):
            yield Finding("PLATE_CN", match.start(), match.end())


def _wechat_ids(text: str) -> Iterator[Finding]:
    for match in _WECHAT.finditer(text):
        if any(not letter.islower() for letter in match["value"]):
            yield Finding("WECHAT", match.start("value"), match.end("value"))


def _companies(text: str) -> Iterator[Finding]:
    """Where called so, the check character is enough; else the organisation code inside must be right as well."""
    for match in _USCC.finditer(text):
        code = match[0].replace(" ", "").replace("-", "").upper()
        named = _COMPANY.names(text, match.start())
        if checksums.uscc(code) and (named or checksums.organisation_code(code[8:17])):
            yield Finding("USCC_CN", match.start(), match.end(), 2)


def _ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN_HEAD.finditer(text):
        wanted = checksums.IBAN_LENGTHS.get(match[0][:2].upper())
        end = _end_of(text, match.start(), wanted) if wanted is not None else None
        if end is not None and checksums.iban(_compact(text[match.start() : end])):
            yield Finding("IBAN", match.start(), end, 3)


def _end_of(text: str, start: int, wanted: int) -> int | None:
    """Where so many letters and digits end, with at most one space or hyphen between two of them."""
    place, found = start, 0
    while place < len(text):
        if _PIECE.match(text, place):
            found += 1
            if found == wanted:
                return place + 1 if not _PIECE.match(text, place + 1) else None
        elif text[place] not in " -" or text[place - 1] in " -":
            return None
        place += 1
    return None


def _compact(code: str) -> str:
    return code.replace(" ", "").replace("-", "").upper()


def _passports(text: str) -> Iterator[Finding]:
    """Only where called so, for a passport's number has no check digit of its own."""
    for pattern, name, weight in ((_PASSPORT_CN, "PASSPORT_CN", 2), (_PASSPORT, "PASSPORT", 1)):
        for match in pattern.finditer(text):
            if _IS_PASSPORT.names(text, match.start()):
                yield Finding(name, match.start(), match.end(), weight)


def _licenses(text: str) -> Iterator[Finding]:
    for match in _LICENSE.finditer(text):
        digits = sum(letter.isdecimal() for letter in match[0])
        if digits >= 4 and _IS_LICENSE.names(text, match.start()):
            yield Finding("US_DRIVER_LICENSE", match.start(), match.end(), 2)
