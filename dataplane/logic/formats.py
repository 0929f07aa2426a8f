"""Finds what cannot be right in a text: a date or hour that does not exist, a share above 100 %, a gap left unfilled.

Each check names what is wrong in words for people. It speaks up only where the text leaves no other reading: "25:61"
may be a score, "at 25:61" may not; "150 %" may be growth, "attendance: 150 %" may not. The number of a person is not
repeated.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dataplane.logic.sensitive.checksums import iban, id_card_cn
from memplane.policy.names import FormatCheck

READ_CHARACTERS = 10_000
"""Checks look at this much of a text."""
LEAP_YEAR = 2024
"""Stands for the year of a day that names none: 29 February may be."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_MONTH = (
    r"(Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)"
)
_ISO = re.compile(r"(?<![\w./-])((?:19|20)\d\d)([-/])(\d{1,2})\2(\d{1,2})(?![\w/-]|\.\d)")
_CHINESE_DATE = re.compile(r"(?<![\d.])(?:(\d{4})年)?(\d{1,2})月(?!球)(?:份|(\d{1,2})[日号])?")
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\.? (\d{{1,2}})(?:st|nd|rd|th)?(?=,? (?:19|20)\d\d\b|\s*[.,;!?)]|\s*$)")
_DAY_FIRST = re.compile(rf"(?<![\d.:$€£-])(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?:,? ((?:19|20)\d\d)\b)?")
_CLOCK = re.compile(
    r"(?:\b(?:at|by|until|till|from|before|after|since|around|today|tomorrow|tonight|starts|begins|ends|meeting|"
    r"appointment)\s+"
    r"|(?:上午|下午|晚上|早上|凌晨|今天|明天|今晚|明早|会议|于|到)\s*"
    r"|\d{4}-\d{2}-\d{2}[T ])(\d{1,2})[:：](\d{2})(?![\d:：])(?!\s*(?:km|mi|ratio))",
    re.IGNORECASE,
)
_CLOCK_BEFORE = re.compile(
    r"(?<![\d:.])(\d{1,2})[:：](\d{2})\s*(?:[ap]\.?m\b|o['’]clock|hrs\b|开会|开始|集合|见面|出发)", re.IGNORECASE
)
_HOUR = re.compile(r"(?:上午|下午|晚上|早上|凌晨|中午)\s*(\d{1,2})点(?:(\d{1,2})分)?")
_SHARE = re.compile(
    r"(?:\b(?:market share|share of|proportion of|attendance|turnout|occupancy|pass rate|success rate|literacy rate|"
    r"unemployment rate|humidity|probability|likelihood|uptime|availability|accuracy)\b[^\d.!?;\n]{0,25}"
    r"|(?:占比|份额|出勤率|合格率|通过率|及格率|成功率|准确率|失业率|入住率|出席率|可用率|概率|湿度|"
    r"良品率)[^\d，。；！？\n]{0,8})"
    r"(\d{1,6}(?:\.\d+)?)\s*(?:%|％|percent\b|per cent\b)"
    r"|(?<![\d.,])(\d{1,6}(?:\.\d+)?)\s*(?:%|％|percent|per cent) of (?:the |our |all |their )?(?:people|users|"
    r"customers|"
    r"employees|respondents|voters|votes|students|patients|members|population|participants|staff|households)\b",
    re.IGNORECASE,
)
_GROWTH = re.compile(
    r"\b(?:rose|grew|grow|up|increas\w+|more|gain\w*|growth)\b|增长|提高|上升|增加|超|涨", re.IGNORECASE
)
_UNIT = re.compile(
    r"\s*(?:[%％$€£¥元万亿块角分克毫升千公斤片粒滴米吨度小天周月年个件份美欧英港日]|(?:[a-zµμ]{1,12}|k|m|bn)\b)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{]{1,2}\s*(?:(?:your|insert|enter|the|first|last|full|user|customer|client|company|employee|contact)[ _-]?)*"
    r"name(?: here)?\s*[\]>}]{1,2}"
    r"|[\[<{【]{1,2}\s*(?:您的|你的|客户|公司|用户|联系人)?(?:姓名|名字|名称|人名)\s*[\]>}】]{1,2}"
    r"|\b(?:Mr|Mrs|Ms|Dr|Dear)\.? (?:X{2,}|_{2,}|\?{2,})(?!\w)"
    r"|\b(?:named|called|my name is|name is|name:|colleague|customer|client|contact|manager) (?:X{2,}|_{2,}|"
    r"\?{2,})(?!\w)"
    r"|(?<![A-Za-z0-9])[Xx×]{2,}(?=先生|女士|小姐|公司|老师|经理|同学|集团|医院|银行|学校|总(?:监|裁)?)"
    r"|(?:叫|名叫|姓名[:：]?|客户|联系人[:：]?)\s*(?:X{2,}|x{2,}|×{2,}|_{2,}|某某)(?![A-Za-z0-9])"
    r"|某某(?:某|先生|女士|公司|经理|老师)",
)
_ID_CARD = re.compile(r"身份证(?:号码?)?\s*(?:[:：是为]\s*)?(?<![\dXx])(\d{6,19}[\dXx])(?![\dA-Za-z*])")
_IBAN = re.compile(r"\bIBAN\b\W{0,3}([A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){2,8})\b")
_UUID = re.compile(r"(?<![\w-])([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]+))(?![\w-])", re.IGNORECASE)
_CUT = re.compile(
    r"(?:\b(?i:ticket|order|invoice|case|contract|incident|reference|employee|customer)(?: (?:number|no\.?|id))?|"
    r"工单|订单|发票|"
    r"合同|编号|单号|工号)[号:：#\s]{0,3}([A-Z]{2,8}-(?:[?#_]+|X{2,}|\d{4}/)?)(?![\w?#/-])"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, by which check; the text says it to people."""

    check: FormatCheck
    text: str


def faults(text: str, checks: Sequence[FormatCheck], amount_words: Sequence[str] = ()) -> tuple[Fault, ...]:
    """What the checks find in a text, in their order; each thing once.

    `amount_words` are words that a number with a unit must follow, wherever a number follows them.
    """
    shown = text[:READ_CHARACTERS]
    found = [Fault(check, told) for check in checks for told in _told(check, shown, amount_words)]
    return tuple(dict.fromkeys(found))


def _told(check: FormatCheck, text: str, amount_words: Sequence[str]) -> Iterator[str]:
    return _amounts(text, amount_words) if check == "amount" else _FINDERS[check](text)


def _dates(text: str) -> Iterator[str]:
    if not any(character.isdigit() for character in text):
        return
    for match in _ISO.finditer(text):
        if not _exists(int(match[1]), int(match[3]), int(match[4])):
            yield f"the date {match[0]} does not exist"
    for match in _CHINESE_DATE.finditer(text):
        if not _exists(int(match[1] or LEAP_YEAR), int(match[2]), int(match[3] or 1)):
            yield f"the date {match[0]} does not exist"
    for match in _MONTH_FIRST.finditer(text):
        if not _exists(LEAP_YEAR, _MONTHS[match[1][:3].lower()], int(match[2])):
            yield f"the date {match[0]} does not exist"
    for match in _DAY_FIRST.finditer(text):
        day = int(match[1])
        if day <= 39 and not _exists(int(match[3] or LEAP_YEAR), _MONTHS[match[2][:3].lower()], day):
            yield f"the date {match[0]} does not exist"


def _exists(year: int, month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= monthrange(max(1, year), month)[1]


def _times(text: str) -> Iterator[str]:
    told: set[int] = set()
    for pattern in (_CLOCK, _CLOCK_BEFORE, _HOUR):
        for match in pattern.finditer(text):
            hour, minute = int(match[1]), int(match[2] or 0)
            if (hour > 24 or minute > 59 or (hour == 24 and minute > 0)) and match.start(1) not in told:
                told.add(match.start(1))
                yield f"the time {text[match.start(1) : match.end()].strip()} does not exist"


def _percentages(text: str) -> Iterator[str]:
    for match in _SHARE.finditer(text):
        if float(match[1] or match[2]) > 100 and not _GROWTH.search(match[0]):
            yield f"a share of more than 100 %: {match[0].strip()}"


def _amounts(text: str, words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    named = re.compile(
        rf"(?:{'|'.join(re.escape(word) for word in words)})(?:\s+(?:is|was|of|are)|\s*[:：=是为])?\s*"
        r"(?<![\d.])(\d[\d,]*(?:\.\d+)?)(?![\d,.]*\d)",
        re.IGNORECASE,
    )
    for match in named.finditer(text):
        if not _UNIT.match(text, match.end()):
            yield f"an amount without a unit: {match[0].strip()}"


def _names(text: str) -> Iterator[str]:
    for match in _PLACEHOLDER.finditer(text):
        yield f"a placeholder stands where a name should: {match[0].strip()}"


def _identifiers(text: str) -> Iterator[str]:
    for match in _ID_CARD.finditer(text):
        if not id_card_cn(match[1].upper()):
            yield "the ID card number is not one: length or check digit is wrong"
    for match in _IBAN.finditer(text):
        if not iban(match[1].replace(" ", "")):
            yield "the IBAN is not one: its check digits are wrong"
    for match in _UUID.finditer(text):
        if len(match[2]) != 12:
            yield f"the identifier {match[1]} is not a whole UUID"
    for match in _CUT.finditer(text):
        yield f"the identifier {match[1]} is incomplete"


_FINDERS: Mapping[FormatCheck, Callable[[str], Iterator[str]]] = {
    "date": _dates,
    "time": _times,
    "percent": _percentages,
    "name": _names,
    "identifier": _identifiers,
}
