"""What of a sensitive value stays to be seen: enough to tell which one is meant, never enough to use it.

| types | stays | example |
|---|---|---|
| PHONE_CN | all but the last eight digits, and the last four | 138****5678 |
| PHONE_US, PHONE | the last four digits, of fewer than ten the last two | (***) ***-5788 |
| BANK_CARD, CREDIT_CARD, BANK_ACCOUNT | the last four (PCI DSS 3.4 allows six more) | **** **** **** 9740 |
| ID_CARD_CN | three and the last four | 110***********002X |
| US_SSN, US_ITIN | the last four | ***-**-3223 |
| IBAN, USCC_CN | two and the last four | GB****************8341 |
| CRYPTO_WALLET | four and the last four | 0xde******…beef |
| PASSPORT_CN, PASSPORT, US_DRIVER_LICENSE, UK_NHS | the last two | *******33 |
| PLATE_CN | province, city and the last one | 川D·****3 |
| WECHAT, QQ | two and the last two | wx*******6w |
| EMAIL | one character and the domain | j***@qq.com |
| IP | the first two of its numbers | 157.0.*.* |
| MAC_ADDRESS | the maker's three bytes | 00:1a:2b:**:**:** |
| all others | the type | [PASSWORD] |

At most half of the letters and digits stay, whatever the table says. Separators stay where they are.
"""

from collections.abc import Mapping
from typing import Final

_KEPT: Final[Mapping[str, tuple[int, int]]] = {
    "PHONE_US": (0, 4),
    "PHONE": (0, 4),
    "BANK_CARD": (0, 4),
    "CREDIT_CARD": (0, 4),
    "BANK_ACCOUNT": (0, 4),
    "ID_CARD_CN": (3, 4),
    "US_SSN": (0, 4),
    "US_ITIN": (0, 4),
    "IBAN": (2, 4),
    "USCC_CN": (2, 4),
    "CRYPTO_WALLET": (4, 4),
    "PASSPORT_CN": (0, 2),
    "PASSPORT": (0, 2),
    "US_DRIVER_LICENSE": (0, 2),
    "UK_NHS": (0, 2),
    "PLATE_CN": (2, 1),
    "WECHAT": (2, 2),
    "QQ": (2, 2),
    "MAC_ADDRESS": (6, 0),
}
_PHONE_HIDDEN: Final = 4
"""Of a Chinese phone number, so many digits before the last four are hidden."""


def mask(type_: str, value: str) -> str:
    """The form of a value of this type in which it may be kept."""
    if type_ == "EMAIL":
        return _email(value)
    if type_ == "IP":
        return _ip(value)
    size = sum(map(str.isalnum, value))
    if type_ == "PHONE_CN":
        return _starred(value, max(0, size - _PHONE_HIDDEN - 4), 4)
    if type_ not in _KEPT:
        return f"[{type_}]"
    head, tail = _KEPT[type_]
    if size < 10 and type_ in {"PHONE", "PHONE_US"}:
        tail = 2
    while head + tail > size // 2:
        head, tail = (head - 1, tail) if head else (0, tail - 1)
    return _starred(value, head, tail)


def _starred(value: str, head: int, tail: int) -> str:
    """Stars for letters and digits but the first `head` and the last `tail`."""
    size = sum(map(str.isalnum, value))
    shown, place = [], 0
    for letter in value:
        if not letter.isalnum():
            shown.append(letter)
            continue
        shown.append(letter if place < head or place >= size - tail else "*")
        place += 1
    return "".join(shown)


def _email(value: str) -> str:
    local, _, domain = value.rpartition("@") if "@" in value else value.rpartition("＠")
    return f"{local[0] if len(local) > 1 else ''}***@{domain}"


def _ip(value: str) -> str:
    """The first two numbers; stars for the others."""
    separator = "." if "." in value and ":" not in value else ":"
    parts = value.replace("．", ".").replace("：", ":").split(separator)
    return separator.join((*parts[:2], *("*" for _ in parts[2:])))
