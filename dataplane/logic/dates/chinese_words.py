"""The words of Chinese that the grammar speaks of, and patterns made of them."""

from dataplane.logic.dates.feasts import CHINESE as FEASTS
from dataplane.logic.dates.grammar import any_of
from dataplane.logic.dates.numerals import HAN

DAYS = {
    **{"大前天": -3, "前天": -2, "前日": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "现在": 0},
    **{"昨儿": -1, "今儿": 0, "明儿": 1},
    **{"明天": 1, "明日": 1, "后天": 2, "大后天": 3},
}
SHORT_DAYS = {"前": -2, "昨": -1, "今": 0, "明": 1, "当": 0}
YEARS = {
    **{"大前年": -3, "前年": -2, "去年": -1, "上一年": -1, "今年": 0, "本年": 0, "这一年": 0},
    **{"明年": 1, "下一年": 1, "后年": 2, "大后年": 3},
}
UNITS = {
    name: unit
    for unit, names in {
        "second": "秒 秒钟",
        "minute": "分钟",
        "hour": "小时 个小时 钟头 个钟头",
        "day": "天 日",
        "week": "周 星期 个星期 礼拜 个礼拜 个周",
        "month": "个月",
        "quarter": "季度 个季度",
        "year": "年",
    }.items()
    for name in names.split()
}
SPANS = {"周": "week", "星期": "week", "礼拜": "week", "月": "month", "季度": "quarter"}
WEEKDAYS = {
    name: number for number, names in enumerate(["一1", "二2", "三3", "四4", "五5", "六6", "日天7"]) for name in names
}
TURNS = {"上": -1, "下": 1, "这": 0, "本": 0, "当": 0}
EDGES = {
    **{"初": "start", "头": "start", "上旬": "early", "中旬": "mid", "中": "mid"},
    **{"下旬": "late", "底": "end", "末": "end", "尾": "end"},
}
SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
HOLIDAYS = {"国庆": (0, 6), "十一": (0, 6), "五一": (0, 4), "劳动节": (0, 4), "春节": (-1, 6), "除夕": (0, 7)}
"""First and last day of the holidays around a feast, from its day; others last three days."""
UNCLEAR_FEASTS = frozenset({"五一", "六一", "十一"})
"""Feasts that are also plain numbers: they count only with a year before or a word of holidays behind."""

_APART = r"(?<![\d零〇一二三四五六七八九十百千万几多半])"
_MONTH_NUMBER = r"(?P<m>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY_NUMBER = r"(?:3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|二十|[一二三四五六七八九])"

YEAR = (
    rf"(?:(?:{_APART}(?:(?P<y>(?:1[89]|2[01])\d\d|[一二][一二三四五六七八九零〇]{{3}}) ?年"
    rf"|(?P<yy>\d\d) ?年(?=\d{{1,2}} ?月))|(?P<r>{any_of(YEARS)}))(?:度|的)? ?)"
)
MONTH = rf"{_APART}{_MONTH_NUMBER} ?月(?![光亮球饼薪卡票租龄经嫂])份?"
DAY = rf"(?P<d>{_DAY_NUMBER}) ?[日号]"
LAST_DAY = rf"(?P<e>{_DAY_NUMBER}) ?[日号]"
FIRST_DAY = rf"(?P<d>{_DAY_NUMBER}) ?[日号]?"
TURN = r"(?<![晚早以马身路线网楼桌])(?P<t>上{1,3}|下{1,3}|这|本|当)一?个?"
WEEK = r"(?:周(?![围边到全转折年密刊长])|星期|礼拜)"
WEEKDAY = r"(?P<w>[一二三四五六日天])"
QUARTER = r"(?:第?(?P<n>[一二三四1-4])季度?|q(?P<q>[1-4]))"
HALF = r"(?P<h>[上下])半年"
EDGE = rf"的?(?P<edge>{any_of(EDGES)})"
COUNT = rf"(?<![\d零〇一二两三四五六七八九十百千万点.])(?P<n>{HAN}|半|[几数])"
UNIT = rf"(?P<u>{any_of(UNITS)})"
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗郑梁谢宋唐许邓冯韩曹曾彭肖田董袁潘蒋蔡杜"
    "叶程苏魏吕丁卢姚沈姜崔谭陆汪范廖贾韦邹熊孟秦薛侯龙史陶贺顾毛郝龚邵钱严"
)
NO_NAME = rf"(?<![{_SURNAMES}])"
"""Nobody's surname stands before: 国庆 is a first name too."""
FEAST = rf"{NO_NAME}(?P<f>{any_of(FEASTS)})节?"
HOLIDAY = r"(?P<long>假期|期间|长假|黄金周|放假)"
