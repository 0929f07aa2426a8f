"""Postal addresses and dates of birth, by light rules: a street with a number, or what is called a date of birth."""

import re
from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded

_PROVINCE: Final = (
    r"(?:北京|天津|上海|重庆)市?|(?:河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|青海|台湾)省?"
    r"|内蒙古(?:自治区)?|广西(?:壮族自治区)?|西藏(?:自治区)?|宁夏(?:回族自治区)?|新疆(?:维吾尔自治区)?|香港(?:特别行政区)?|澳门(?:特别行政区)?"
)
_UNIT: Final = r"[\u4e00-\u9fff]{1,8}?(?:自治州|自治县|地区|市|区|县|旗|镇|乡|州|街道|新区|村|小区)"
_STREET: Final = r"[\u4e00-\u9fffA-Za-z0-9]{1,10}?(?:路|街|大道|道|巷|弄|胡同|里|村|园|苑|花园|广场|大厦|小区)"
_NUMBER: Final = r"[0-9一二三四五六七八九十百]{1,6}(?:号院|号楼|号|弄|幢|栋|座)"
_INSIDE: Final = (
    r"(?:[ ,，]?(?:[0-9A-Za-z一二三四五六七八九十]{1,5}(?:号楼|幢|栋|座|单元|楼|层|室|号|户|门|房))){0,5}"
    r"(?:[0-9]{3,5}(?![0-9]))?"
)
_CHINESE: Final = re.compile(rf"(?:{_PROVINCE})(?:{_UNIT}){{0,4}}(?:{_STREET}){{1,2}}{_NUMBER}{_INSIDE}")

_STREET_EN: Final = (
    r"(?:Street|St\.?|Avenue|Ave\.?|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Sq|Terrace|Ter|Way"
    r"|Parkway|Pkwy|Highway|Hwy|Circle|Cir|Trail|Trl|Alley|Aly|Crescent|Close|Plaza|Loop|Ridge|Park|Commons|Broadway)"
)
_WORDS_EN: Final = r"(?:[A-Z0-9][\w'’.\-]{0,24} ){1,4}"
_UNIT_EN: Final = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|Room|Rm)\.? ?#?[A-Za-z0-9\-]{1,6})?"
_DIRECTION: Final = r"(?: (?:North|South|East|West|N|S|E|W|NE|NW|SE|SW)(?:east|west)?\b)?"
_CITY_EN: Final = r"(?:,? (?:[A-Z][\w'’.\-]{0,24} ?){1,3}, ?[A-Z]{2} [0-9]{5}(?:-[0-9]{4})?)"
_ENGLISH: Final = re.compile(
    rf"(?<![0-9A-Za-z])[0-9]{{1,6}}[A-Z]? {_WORDS_EN}(?:{_STREET_EN}\b{_DIRECTION}{_UNIT_EN}{_CITY_EN}?"
    rf"|(?:[A-Z][\w'’.\-]{{0,24}})?{_UNIT_EN}{_CITY_EN})"
)
_MILITARY: Final = re.compile(
    r"\b(?:Unit|PSC|CMR) [0-9]{3,5},? Box [0-9]{3,5},? (?:D|A|F)PO (?:AA|AE|AP) [0-9]{5}(?:-[0-9]{4})?"
    r"|\bUSN[SV] \w{2,20},? FPO (?:AA|AE|AP) [0-9]{5}"
)
_BORN: Final = re.compile(
    r"(?:出生日期|出生于|生日|出生年月|\bdate of birth\b|\bd\.?o\.?b\b\.?|\bborn on\b|\bbirth ?date\b|\bbirthday\b)"
    r"[^0-9\n.。!?！？]{0,16}?"
    r"(?P<date>(?:19|20)[0-9]{2}(?:[-/.][0-9]{1,2}[-/.][0-9]{1,2}|年[0-9]{1,2}月[0-9]{1,2}[日号]?)|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:19|20)[0-9]{2}"
    r"|(?:19|20)[0-9]{6})(?![0-9])",
    re.IGNORECASE,
)
_BORN_WORDS: Final = ("出生", "生日", "birth", "dob", "d.o.b", "born on")


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    patterns = (_ENGLISH, _MILITARY) if text.isascii() else (_CHINESE, _ENGLISH, _MILITARY)
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield Finding("ADDRESS", match.start(), match.end(), 0)
    if folded.says(_BORN_WORDS):
        for match in _BORN.finditer(text):
            yield Finding("DATE_OF_BIRTH", match.start("date"), match.end("date"))
