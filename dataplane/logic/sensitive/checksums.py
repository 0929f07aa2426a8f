"""Check digits of the numbers that have them. Every function takes compact text and is False for any other shape."""

from datetime import date
from typing import Final

_USCC_ALPHABET: Final = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_LUHN_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_PROVINCES: Final = frozenset(
    (
        *range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47),
        *range(50, 55), *range(61, 66), 71, 81, 82, 83,
    )
)  # fmt: skip
"""GB/T 2260, the first two digits; 83 as in residence permits of Taiwan residents since 2018."""

IBAN_LENGTHS: Final = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20,
    "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19,
    "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24,
    "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
    "YE": 30,
}  # fmt: skip
"""Characters of an IBAN by country (SWIFT IBAN registry)."""


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1 annex B: cards."""
    values = [ord(digit) - 48 for digit in reversed(digits)]
    return (sum(values[::2]) + sum(_LUHN_DOUBLED[value] for value in values[1::2])) % 10 == 0


def id_card_cn(number: str) -> bool:
    """GB 11643: 17 digits and a check character (ISO 7064 MOD 11-2), of a known province and a day that can be."""
    if not id_card_cn_shape(number):
        return False
    total = sum(int(digit) << (17 - place) for place, digit in enumerate(number[:17]))
    return (total + int(number[17].replace("X", "10"))) % 11 == 1


def id_card_cn_shape(number: str) -> bool:
    """The same without the check character, for a number that is called an ID card's."""
    shaped = len(number) == 18 and number[:17].isdecimal() and (number[17].isdecimal() or number[17] == "X")
    return shaped and int(number[:2]) in _PROVINCES and is_birth_date(number[6:14])


def is_birth_date(digits: str) -> bool:
    """YYYYMMDD, a day of the years 1900 to 2099."""
    if not 1900 <= int(digits[:4]) <= 2099:
        return False
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True


def uscc(code: str) -> bool:
    """GB 32100: 18 characters with a check character (MOD 31-3), of a known province."""
    if len(code) != 18 or not set(code) <= set(_USCC_ALPHABET) or not code[2:8].isdecimal():
        return False
    total = sum(_USCC_ALPHABET.index(letter) * 3**place for place, letter in enumerate(code[:17]))
    return int(code[2:4]) in {*_PROVINCES, 10} and _USCC_ALPHABET[-total % 31] == code[17]


def organisation_code(code: str) -> bool:
    """GB 11714: characters 9 to 17 of a social credit code, the last one a check character (MOD 11)."""
    weights = (3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(letter, 36) * weight for letter, weight in zip(code[:8], weights, strict=True))
    return "0123456789X0"[11 - total % 11] == code[8]


def iban(code: str) -> bool:
    """ISO 13616: of its country's length, 1 modulo 97 when its letters are numbers and its head is its tail."""
    if IBAN_LENGTHS.get(code[:2]) != len(code):
        return False
    return int("".join(str(int(letter, 36)) for letter in code[4:] + code[:4])) % 97 == 1


def ssn(area: int, group: int, serial: int) -> bool:
    """A social security number that can be issued: no part is 0, the area is neither 666 nor 900 or more."""
    return area not in {0, 666} and area < 900 and group > 0 and serial > 0


def itin(area: int, group: int) -> bool:
    """A taxpayer number of the IRS: area from 900, group 50 to 65, 70 to 88, 90 to 92 or 94 to 99."""
    return area >= 900 and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 99) and group != 93


def nhs(digits: str) -> bool:
    """Ten digits with the NHS's check digit (MOD 11)."""
    total = sum(int(digit) * (10 - place) for place, digit in enumerate(digits[:9]))
    return len(digits) == 10 and 11 - total % 11 == (int(digits[9]) or 11)


def routing(digits: str) -> bool:
    """Nine digits of the American Bankers Association, 0 modulo 10 with weights 3, 7, 1."""
    return len(digits) == 9 and sum(int(digit) * (3, 7, 1)[place % 3] for place, digit in enumerate(digits)) % 10 == 0
