"""Cards, ID cards, and numbers that are called somebody's: one look at every window of digits of a text.

A number with a check digit is believed where its grouping is one that people use; without one it needs its name
before it. Card numbers by ISO/IEC 7812: issuer prefix, lengths of that issuer, Luhn.
"""

from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive import checksums
from dataplane.logic.sensitive.digits import Window, chains, windows
from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded
from dataplane.logic.sensitive.labels import NOT_SENSITIVE, Label

_CARD: Final = Label(
    (
        "卡", "银联", "card", "cc", "credit~", "debit~", "visa", "mastercard", "master card", "amex",
        "american express",
        "unionpay", "discover", "maestro", "jcb", "diners",
    )
)  # fmt: skip
_ID_CARD: Final = Label(
    ("身份证", "身份号", "证件号", "公民身份", "id card", "id number", "id no", "identity card", "identity number",
     "identification", "national id")
)  # fmt: skip
_ACCOUNT: Final = Label(
    ("银行账", "银行帐", "对公账", "收款账", "账号", "帐号", "bank account", "account number", "account no", "acct~"),
    reach=12,
)
_ACCOUNT_CLOSE: Final = Label(("account", "a/c", "账户", "户头"), close=True)
_ROUTING: Final = Label(("routing", "aba", "transit number"))
_SSN: Final = Label(("ssn", "social security"))
_ITIN: Final = Label(("itin", "taxpayer"))
_NHS: Final = Label(("nhs", "national health"))
_QQ: Final = Label(("qq",), close=True)
_ZIP: Final = Label(("zip", "zipcode", "zip code", "postal code", "postcode", "邮编", "邮政编码"), close=True)

_DOMESTIC: Final = "BANK_CARD"
_UNIONPAY: Final = range(16, 20)


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    for groups, separators in chains(text):
        for window in windows(text, groups, separators):
            yield from _judged(text, window)


def _judged(text: str, window: Window) -> Iterator[Finding]:
    size = len(window.digits)
    if size < 3:
        return
    if size in {17, 18, 15}:
        yield from _id_card(text, window)
    if 12 <= size <= 19:
        yield from _card(text, window)
    if size == 9 and window.sizes in {(9,), (3, 2, 4)}:
        yield from _american(text, window)
    yield from _named(text, window)


def _is_called(label: Label, text: str, window: Window) -> bool:
    return window.leads and label.names(text, window.start)


def _id_card(text: str, window: Window) -> Iterator[Finding]:
    """18 characters, the last perhaps an X; 15 digits of the first generation where they are called so."""
    end = window.end
    number = window.digits
    if len(number) == 17 and text[end : end + 1] in {"x", "X"}:
        number, end = number + "X", end + 1
    elif len(number) == 17 and window.separator and text[end : end + 2].upper() == window.separator + "X":
        number, end = number + "X", end + 2
    labelled = _is_called(_ID_CARD, text, window)
    if len(number) == 15:
        if labelled and checksums.is_birth_date("19" + number[6:12]):
            yield Finding("ID_CARD_CN", window.start, end)
        return
    sure = checksums.id_card_cn(number) and not _is_called(NOT_SENSITIVE, text, window)
    if sure or (labelled and len(number) == 18 and checksums.is_birth_date(number[6:14])):
        yield Finding("ID_CARD_CN", window.start, end, 2)


def _card(text: str, window: Window) -> Iterator[Finding]:
    digits = window.digits
    scheme, usual = _scheme(digits)
    if not _is_card_grouping(window.sizes) or not checksums.luhn(digits):
        return
    labelled = _is_called(_CARD, text, window) and not _is_called(_ID_CARD, text, window)
    if (labelled or usual) and (labelled or not _is_called(NOT_SENSITIVE, text, window)):
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


def _american(text: str, window: Window) -> Iterator[Finding]:
    """Social security and taxpayer numbers: 3-2-4 with hyphens, or called so."""
    area, group, serial = int(window.digits[:3]), int(window.digits[3:5]), int(window.digits[5:])
    shaped = window.separator == "-" and not _is_called(NOT_SENSITIVE, text, window)
    named = _is_called(_SSN, text, window)
    if (shaped or _is_called(_ITIN, text, window)) and not named and checksums.itin(area, group):
        yield Finding("US_ITIN", window.start, window.end, 2)
    elif (shaped and checksums.ssn(area, group, serial)) or (named and serial > 0):
        yield Finding("US_SSN", window.start, window.end, 2 if shaped else 1)


def _named(text: str, window: Window) -> Iterator[Finding]:
    """What only its name tells."""
    if not window.leads:
        return
    size, start, end = len(window.digits), window.start, window.end
    if size == 10 and checksums.nhs(window.digits) and _is_called(_NHS, text, window):
        yield Finding("UK_NHS", start, end, 2)
    if (size == 9 and checksums.routing(window.digits) and _is_called(_ROUTING, text, window)) or (
        8 <= size <= 21 and (_is_called(_ACCOUNT, text, window) or _is_called(_ACCOUNT_CLOSE, text, window))
    ):
        yield Finding("BANK_ACCOUNT", start, end)
    if 5 <= size <= 11 and len(window.sizes) == 1 and _is_called(_QQ, text, window):
        yield Finding("QQ", start, end)
    if 3 <= size <= 9 and _is_called(_ZIP, text, window):
        yield Finding("ZIP_CODE", start, end)
