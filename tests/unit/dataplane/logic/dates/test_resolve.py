from datetime import UTC, datetime, timedelta, timezone
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.dates import TimeRange, chinese_words, english_words, european_words, resolve
from dataplane.logic.dates.feasts import CHINESE, ENGLISH

NOW = datetime(2026, 11, 30, 9, 0)
"""A Monday."""


def days(text: str, now: datetime = NOW) -> str:
    found = resolve(text, now)
    if found is None:
        return "none"
    first, last = found.start.date().isoformat(), found.end.date().isoformat()
    return first if first == last else f"{first}..{last}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we say last Tuesday?", "2026-11-24"),
        ("next Friday", "2026-12-11"),
        ("on Monday", "2026-11-30"),
        ("Monday of last week", "2026-11-23"),
        ("two Tuesdays ago", "2026-11-17"),
        ("two weekends ago", "2026-11-21..2026-11-22"),
        ("the week before last", "2026-11-16..2026-11-22"),
        ("in March 2023", "2023-03-01..2023-03-31"),
        ("in May", "2026-05-01..2026-05-31"),
        ("December", "2025-12-01..2025-12-31"),
        ("May 5", "2026-05-05"),
        ("the 3rd of May, 2023", "2023-05-03"),
        ("Friday, March 3rd, 2023", "2023-03-03"),
        ("on the 5th", "2026-11-05"),
        ("the 5th of last month", "2026-10-05"),
        ("three days ago", "2026-11-27"),
        ("2w ago", "2026-11-16"),
        ("twenty-one days ago", "2026-11-09"),
        ("half a year ago", "2026-05-30"),
        ("a few weeks ago", "2026-10-26..2026-11-16"),
        ("over the past two weeks", "2026-11-16..2026-11-30"),
        ("two weeks from now", "2026-12-14"),
        ("the first half of 2023", "2023-01-01..2023-06-30"),
        ("the second quarter of last year", "2025-04-01..2025-06-30"),
        ("last Q4", "2025-10-01..2025-12-31"),
        ("in the 90s", "1990-01-01..1999-12-31"),
        ("in 2019", "2019-01-01..2019-12-31"),
        ("early 2023", "2023-01-01..2023-04-30"),
        ("late March 2024", "2024-03-21..2024-03-31"),
        ("at the end of last month", "2026-10-21..2026-10-31"),
        ("the last week of August 2023", "2023-08-25..2023-08-31"),
        ("the second weekend of May", "2026-05-09..2026-05-10"),
        ("the week of May 4", "2026-05-04..2026-05-10"),
        ("Q3 last year", "2025-07-01..2025-09-30"),
        ("over the last year", "2025-11-30..2026-11-30"),
        ("in the last 24 hours", "2026-11-29..2026-11-30"),
        ("this time last year", "2025-11-30"),
        ("New Year's Eve", "2025-12-31"),
        ("last summer", "2026-06-01..2026-08-31"),
        ("last Christmas", "2025-12-25"),
        ("Thanksgiving 2025", "2025-11-27"),
        ("Easter 2024", "2024-03-31"),
        ("on Valentine's Day", "2026-02-14"),
    ],
)
def test_english_expressions(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("上周三", "2026-11-25"),
        ("下周三", "2026-12-09"),
        ("下下个星期三", "2026-12-16"),
        ("周三", "2026-11-25"),
        ("周末", "2026-11-28..2026-11-29"),
        ("三天前", "2026-11-27"),
        ("大前天", "2026-11-27"),
        ("两三天前", "2026-11-27..2026-11-28"),
        ("前几天", "2026-11-25..2026-11-28"),
        ("半个月前", "2026-11-15"),
        ("一个半月前", "2026-10-15"),
        ("两年半前", "2024-05-30"),
        ("上个月底", "2026-10-21..2026-10-31"),
        ("下个月5号", "2026-12-05"),
        ("去年年底", "2025-11-01..2025-12-31"),
        ("最近两周", "2026-11-16..2026-11-30"),
        ("过去半年", "2026-05-30..2026-11-30"),
        ("去年下半年", "2025-07-01..2025-12-31"),
        ("2024年第三季度", "2024-07-01..2024-09-30"),
        ("2024年Q1", "2024-01-01..2024-03-31"),
        ("２０２３年５月３日", "2023-05-03"),
        ("二〇二三年五月", "2023-05-01..2023-05-31"),
        ("23年3月", "2023-03-01..2023-03-31"),
        ("十月一日", "2026-10-01"),
        ("八十年代", "1980-01-01..1989-12-31"),
        ("国庆节", "2026-10-01"),
        ("国庆假期", "2026-10-01..2026-10-07"),
        ("去年春节", "2025-01-29"),
        ("2023年中秋节", "2023-09-29"),
        ("清明节", "2026-04-05"),
        ("去年今天", "2025-11-30"),
        ("上季度末", "2026-09-01..2026-09-30"),
        ("昨儿", "2026-11-29"),
        ("去年夏天", "2025-06-01..2025-08-31"),
    ],
)
def test_chinese_expressions(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-15", "2024-01-15"),
        ("在2024/3/5见面", "2024-03-05"),
        ("2023-05-08T13:56:00Z", "2023-05-08"),
        ("03/15/2024", "2024-03-15"),
        ("15.03.2024", "2024-03-15"),
        ("2024-03", "2024-03-01..2024-03-31"),
        ("2024-Q1", "2024-01-01..2024-03-31"),
        ("Q4 2024", "2024-10-01..2024-12-31"),
        ("2024-W07", "2024-02-12..2024-02-18"),
        ("il y a trois semaines", "2026-11-09"),
        ("vor ein paar Wochen", "2026-10-26..2026-11-16"),
        ("letzten Freitag", "2026-11-27"),
        ("el lunes pasado", "2026-11-23"),
        ("3 de mayo de 2023", "2023-05-03"),
        ("due mesi fa", "2026-09-30"),
        ("semana passada", "2026-11-23..2026-11-29"),
        ("drie dagen geleden", "2026-11-27"),
        ("неделю назад", "2026-11-23"),
        ("в прошлом году", "2025-01-01..2025-12-31"),
        ("que s'est-il passé hier", "2026-11-29"),
    ],
)
def test_figures_and_other_languages(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between May 3 and 7", "2026-05-03..2026-05-07"),
        ("between May 3 and May 7, 2024", "2024-05-03..2024-05-07"),
        ("from Monday to Wednesday", "2026-11-23..2026-11-25"),
        ("from 2019 to 2021", "2019-01-01..2021-12-31"),
        ("5月3日到7日", "2026-05-03..2026-05-07"),
        ("从周一到周三", "2026-11-23..2026-11-25"),
        ("since June", "2026-06-01..2026-11-30"),
        ("去年以来", "2025-01-01..2026-11-30"),
        ("before 2020", "0001-01-01..2020-01-01"),
        ("国庆之前", "0001-01-01..2026-10-01"),
        ("after last Friday", "2026-11-27..9999-12-31"),
        ("until May", "0001-01-01..2026-05-31"),
        ("two weeks before August 11, 2023", "2023-07-28"),
        ("the week before 16 November 2023", "2023-11-09..2023-11-15"),
        ("last weekend before April 10, 2023", "2023-04-08..2023-04-09"),
    ],
)
def test_ranges_of_two_times_and_of_one(text: str, expected: str) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "may", "I may go", "March on", "march forward", "sat down", "the sun is up", "mar", "fall down"),
        *(
            "April said hi",
            "every Monday",
            "Mondays",
            "yesterdays",
            "a second",
            "at the end of the day",
            "in 2000 words",
        ),
        *(
            "learned it in two weeks",
            "the 5th floor",
            "version 2.3.2024",
            "192.168.1.1",
            "138-0013-8000",
            "+1 555 2024",
        ),
        *("INV-2024/0031", "report_2024-01-15.pdf", "2020-13-45", "31 February 2020", "1.5 years ago", "3:30pm"),
        *(
            "一点",
            "有一点累",
            "周到的服务",
            "周围",
            "一周一次",
            "每周一",
            "三年级",
            "五年",
            "月光",
            "一百万年前",
            "十一点",
        ),
        *(
            "王国庆是我的上司",
            "说明天气",
            "声明早已发布",
            "目前天气",
            "目前儿童",
            "上海",
            "上次",
            "13800138000",
            "3.5版本",
            "几年前",
        ),
        *("Was ist hier passiert?", "guten Morgen", "notes from mars", "上海と東京", "한국어"),
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert days(text) == "none"


@pytest.mark.parametrize(
    ("text", "hours"),
    [("yesterday evening", (17, 23)), ("last night", (18, 23)), ("昨天下午", (12, 17)), ("今早", (5, 11))],
)
def test_a_part_of_the_day_narrows_it(text: str, hours: tuple[int, int]) -> None:
    found = resolve(text, NOW)
    assert found is not None
    assert (found.start.hour, found.end.hour) == hours


def test_a_weekend_on_its_own_sunday_is_the_last_one() -> None:
    assert days("last weekend", datetime(2026, 8, 9, 18)) == "2026-08-08..2026-08-09"


def test_months_are_counted_to_the_last_day_of_a_shorter_one() -> None:
    assert days("one month ago", datetime(2026, 12, 31)) == "2026-11-30"
    assert days("a year ago", datetime(2024, 2, 29)) == "2023-02-28"


def test_what_is_counted_in_long_units_is_blurred_by_half_of_one() -> None:
    found = resolve("two months ago", NOW)
    assert found is not None
    assert found.blur == timedelta(days=15)


def test_the_range_is_in_the_time_zone_of_the_reference() -> None:
    there = timezone(timedelta(hours=8))
    assert resolve("today", NOW.replace(tzinfo=there)) == TimeRange(
        datetime(2026, 11, 30, tzinfo=there), datetime(2026, 11, 30, 23, 59, 59, 999_999, tzinfo=there)
    )


WORDS = [
    *(*english_words.MONTHS, *english_words.WEEKDAYS, *english_words.UNITS, *english_words.TURNS, *english_words.EDGES),
    *(*english_words.DAY_WORDS, *english_words.FEW, *english_words.SEASONS, *english_words.PARTS, *ENGLISH, *CHINESE),
    *(*chinese_words.DAYS, *chinese_words.YEARS, *chinese_words.UNITS, *chinese_words.TURNS, *chinese_words.EDGES),
    *(*european_words.MONTHS, *european_words.DAY_WORDS, "vor", "il y a", "fa", "назад", "letzte", "passado", "2024"),
    *("0", "1", "5", "31", "9999", "99999", "a", "ago", "since", "before", "after", "the", "to", "and", "between"),
    *(
        "一",
        "十",
        "半",
        "几",
        "月",
        "号",
        "年",
        "周",
        "前",
        "后",
        "之前",
        "以来",
        "到",
        "最近",
        "第",
        "季度",
        "半年",
        "末",
    ),
]
MOMENTS = [NOW, datetime.min, datetime.max, datetime(2024, 2, 29, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)),
    st.sampled_from(MOMENTS) | st.datetimes(),
)
def test_no_text_raises_and_a_range_does_not_end_before_it_starts(text: str, now: datetime) -> None:
    found = resolve(text, now)
    assert found is None or (found.start <= found.end and found.start.tzinfo == now.tzinfo)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.sampled_from(MOMENTS))
def test_nor_does_one_without_spaces(text: str, now: datetime) -> None:
    found = resolve(text, now)
    assert found is None or found.start <= found.end


@pytest.mark.parametrize("text", ["😀", "last ", "一", "二〇二三年", "1", "2024-", "ﷺ", "a a "])
def test_a_megabyte_of_anything_is_read_in_bounded_time(text: str) -> None:
    long = text * (1_000_000 // len(text))
    begun = perf_counter()
    resolve(long, NOW)
    assert perf_counter() - begun < 2.0  # 0.02 s alone
