"""Numbers as the grammars meet them: digits, English words below a hundred, Chinese numerals."""

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_HAN_DIGITS = {
    digit: value
    for value, digits in enumerate(["零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"])
    for digit in digits
}
_HAN_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}

_SMALL = "|".join(sorted(_UNITS, key=len, reverse=True))
ENGLISH = rf"(?:\d{{1,4}}|an?|(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_UNITS[1:10])}))?|{_SMALL})"
"""Pattern of an English count; "a" and "an" are one."""
HAN = r"(?:\d{1,4}|[〇零一二两三四五六七八九十百千万]{1,7})"
"""Pattern of a Chinese count."""


def english(text: str) -> int:
    """The value of what ENGLISH matched."""
    if text.isdecimal():
        return int(text)
    if text in ("a", "an"):
        return 1
    tens, _, rest = text.replace("-", " ").partition(" ")
    if tens in _TENS:
        return 10 * (_TENS.index(tens) + 2) + (_UNITS.index(rest) if rest else 0)
    return _UNITS.index(text)


def han(text: str) -> int:
    """The value of what HAN matched: 二十三 is 23, and so is 二三, read digit by digit."""
    if text.isdecimal():
        return int(text)
    if not any(place in text for place in _HAN_PLACES):
        return int("".join(str(_HAN_DIGITS[digit]) for digit in text))
    total = section = digit = 0
    for character in text:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        elif character == "万":
            total, section, digit = total + max(1, section + digit) * 10_000, 0, 0
        else:
            section, digit = section + max(1, digit) * _HAN_PLACES[character], 0
    return total + section + digit
