"""Cards, ID cards, and numbers that are called somebody's: one look at every window of digits of a text.

A number with a check digit is believed where its grouping is one that people use; without one it needs its name
before it. Card numbers by ISO/IEC 7812: issuer prefix, lengths of that issuer, Luhn.
"""

from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive import checksums
from dataplane.logic.sensitive.digits import Window, chains, windows
from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.labels import NOT_SENSITIVE, before, close_label, label

_CARD: Final = label(
    r"卡|银联|\bcards?\b|\bcc\b|\bcredit|\bdebit|\bvisa\b|\bmaster ?card|\bamex\b|american express|\bunionpay"
    r"|\bdiscover\b|\bmaestro|\bjcb\b|\bdiners"
)
_ID_CARD: Final = label(r"身份证|身份号|证件号|公民身份|\bid card|\bidentity card|\bidentity number|\bnational id")
_ACCOUNT: Final = label(
    r"银行账[号户]|银行帐[号户]|对公账[号户]|收款账[号户]|账号|帐号|\bbank account|\baccount (?:number|no|#)|\bacct", 20
)
_ROUTING: Final = label(r"\brouting|\baba\b|\btransit number")
_SSN: Final = label(r"\bssn\b|social security")
_ITIN: Final = label(r"\bitin\b|taxpayer")
_NHS: Final = label(r"\bnhs\b|national health")
_QQ: Final = close_label(r"\bqq")
_ZIP: Final = close_label(r"\bzip(?: ?code)?|\bpostal code|\bpostcode|邮编|邮政编码")

_DOMESTIC: Final = "BANK_CARD"
_UNIONPAY: Final = range(16, 20)


def find(text: str) -> Iterator[Finding]:
    """Findings in a folded text."""
    for groups, separators in chains(text):
        for window in windows(text, groups, separators):
            yield from _judged(text, window)


def _judged(text: str, window: Window) -> Iterator[Finding]:
    size = len(window.digits)
    if size < 3:
        return
    called = before(text, window.start)
    if size in {17, 18, 15}:
        yield from _id_card(text, window, called)
    if 12 <= size <= 19:
        yield from _card(window, called)
    yield from _american(window, called)
    yield from _named(window, called)


def _id_card(text: str, window: Window, called: str) -> Iterator[Finding]:
    """18 characters, the last perhaps an X; 15 digits of the first generation where they are called so."""
    end = window.end
    number = window.digits
    if len(number) == 17 and text[end : end + 1] in {"x", "X"}:
        number, end = number + "X", end + 1
    elif len(number) == 17 and window.separator and text[end : end + 2].upper() == window.separator + "X":
        number, end = number + "X", end + 2
    labelled = _ID_CARD.search(called) is not None
    if len(number) == 15:
        if labelled and checksums.is_birth_date("19" + number[6:12]):
            yield Finding("ID_CARD_CN", window.start, end)
    elif checksums.id_card_cn(number) and not NOT_SENSITIVE.search(called):
        yield Finding("ID_CARD_CN", window.start, end, 2)
    elif labelled and len(number) == 18 and checksums.is_birth_date(number[6:14]):
        yield Finding("ID_CARD_CN", window.start, end)


def _card(window: Window, called: str) -> Iterator[Finding]:
    digits = window.digits
    scheme, usual = _scheme(digits)
    if not _is_card_grouping(window.sizes) or not checksums.luhn(digits):
        return
    labelled = _CARD.search(called) is not None
    if (labelled or usual) and (labelled or not NOT_SENSITIVE.search(called)):
        yield Finding(scheme, window.start, window.end, 2)


def _scheme(digits: str) -> tuple[str, bool]:
    """UnionPay or other, and whether it is a length and prefix that stands for a card without being called one."""
    size, head = len(digits), int(digits[:4])
    if digits.startswith("62"):
        return _DOMESTIC, size in _UNIONPAY
    visa = digits[0] == "4" and size in {16, 19}
    mastercard = (5100 <= head < 5600 or 2221 <= head <= 2720) and size == 16
    amex = digits[:2] in {"34", "37"} and size == 15
    discover = (head == 6011 or 6440 <= head < 6600) and size == 16
    jcb = 3528 <= head < 3590 and size == 16
    diners = (3000 <= head < 3060 or digits[:2] in {"36", "38", "39"}) and size == 14
    return "CREDIT_CARD", visa or mastercard or amex or discover or jcb or diners


def _is_card_grouping(sizes: tuple[int, ...]) -> bool:
    """One group, equal ones but for a shorter last, or as American Express and some banks print them."""
    if len(sizes) == 1 or sizes in {(4, 6, 5), (4, 6, 4), (6, 13), (6, 10), (8, 8), (8, 11), (6, 9, 4), (6, 6, 7)}:
        return True
    return len(set(sizes[:-1])) == 1 and sizes[-1] <= sizes[0]


def _american(window: Window, called: str) -> Iterator[Finding]:
    """Social security and taxpayer numbers: 3-2-4 with hyphens, or called so."""
    if len(window.digits) != 9 or window.sizes not in {(9,), (3, 2, 4)}:
        return
    area, group, serial = int(window.digits[:3]), int(window.digits[3:5]), int(window.digits[5:])
    shaped = window.separator == "-" and not NOT_SENSITIVE.search(called)
    named = _SSN.search(called) is not None
    if (shaped or _ITIN.search(called)) and not named and checksums.itin(area, group):
        yield Finding("US_ITIN", window.start, window.end, 2)
    elif (shaped and checksums.ssn(area, group, serial)) or (named and serial > 0):
        yield Finding("US_SSN", window.start, window.end, 2 if shaped else 1)


def _named(window: Window, called: str) -> Iterator[Finding]:
    """What only its name tells."""
    size, start, end = len(window.digits), window.start, window.end
    if size == 10 and checksums.nhs(window.digits) and _NHS.search(called):
        yield Finding("UK_NHS", start, end, 2)
    if (size == 9 and checksums.routing(window.digits) and _ROUTING.search(called)) or (
        8 <= size <= 21 and _ACCOUNT.search(called)
    ):
        yield Finding("BANK_ACCOUNT", start, end)
    if 5 <= size <= 11 and len(window.sizes) == 1 and _QQ.search(called):
        yield Finding("QQ", start, end)
    if 3 <= size <= 9 and _ZIP.search(called):
        yield Finding("ZIP_CODE", start, end)
