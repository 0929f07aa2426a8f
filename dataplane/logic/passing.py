"""Tells what is of interest for a day or two: statements about one coming or just past day.

"A meeting tomorrow at 3" is a fact as good as any, and worthless the day after. A statement is passing when its time
expression, resolved against the time of the statement, is at most a day long and lies near. What recurs ("every
Monday"), begins ("from tomorrow on") or changes a life ("we married yesterday") is not.
"""

import re
from datetime import UTC, datetime, timedelta

from dataplane.logic.dates import resolve

SHOWN_CHARACTERS = 2_000
AHEAD = timedelta(days=14)
BEHIND = timedelta(days=2)
LONGEST = timedelta(days=1)
"""How far ahead and behind a day may lie, and how long it may be. Unmeasured."""
_LATEST = 253_402_300_799_000_000

_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:this|last|next) (?:morning|afternoon|evening|night)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|\d{1,4}[-/]\d{1,2}|(?:\d|[一二三四五六七八九十])[日号]"
    r"|今天|今晚|今早|今日|明天|明早|明晚|明日|后天|昨天|昨晚|昨日|前天|(?:周|星期|礼拜)[一二三四五六日天]",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|(?:周|星期|礼拜)[一二三四五六日天]", re.IGNORECASE
)
_PAST = re.compile(r"\b(?:last|was|were|had|did|went|ago|\w{3,}ed)\b|上周|上个?星期|了|过", re.IGNORECASE)
_LASTS = re.compile(
    r"\b(?:every|each|always|usually|weekly|daily|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|"
    r"since|"
    r"from (?:now|today|tomorrow|\w+day)(?: on)?|starting|as of|effective|no longer|until further notice|birthday|"
    r"anniversary|deadline|expires?)\b|每|总是|一直|平时|经常|从.{0,6}(?:起|开始)|以来|不再|生日|纪念日|截止|到期|为止",
    re.IGNORECASE,
)
_CHANGES_LIFE = re.compile(
    r"\b(?:married|engaged|divorced|born|birth|died|passed away|pregnant|adopted|diagnosed|moved (?:to (?!\d)|into|"
    r"house)|"
    r"hired|fired|laid off|quit|resigned|retired|graduated|promoted|new job|bought (?:a|our|my) (?:house|home|flat|"
    r"apartment|car)|broke up|signed (?:a|the|our)|decided|agreed|approved|changed|switched|accident|surgery|"
    r"allerg\w+|won)\b"
    r"|结婚|订婚|离婚|出生|生了|去世|怀孕|领养|收养|确诊"
    r"|搬到|搬家|入职|辞职|离职|被裁|退休|毕业|升职|买了(?:房|车)|分手|签了|签约|决定"
    r"|批准|同意|改用|换成|改成|车祸|手术|过敏|获奖|得了",
    re.IGNORECASE,
)


def is_passing(text: str, now_us: int) -> bool:
    """Whether the text, said at `now_us`, is about a day that is soon over, or just is."""
    shown = text[:SHOWN_CHARACTERS]
    if not _RELATIVE.search(shown) or _LASTS.search(shown) or _CHANGES_LIFE.search(shown):
        return False
    now = datetime.fromtimestamp(min(max(now_us, 0), _LATEST) / 1_000_000, UTC).replace(tzinfo=None)
    found = resolve(shown, now)
    if found is None or found.end - found.start > LONGEST:
        return False
    behind = timedelta(days=7) if _WEEKDAY.search(shown) and not _PAST.search(shown) else BEHIND
    return now - behind <= found.end and found.start <= now + AHEAD
