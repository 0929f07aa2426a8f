import pytest

from dataplane.logic.parts import MOST_PARTS, asked_parts


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("我同事多大年纪啊？另外，启动会的时间是什么？", ("我同事多大年纪啊？", "启动会的时间是什么？")),
        ("Where is Ann? Also, who is Bob? And when do we meet?", ("Where is Ann?", "who is Bob?", "when do we meet?")),
        ("a；还有b；此外，c", ("a；", "b；", "c")),
    ],
)
def test_each_thing_asked_for_is_a_part(query: str, parts: tuple[str, ...]) -> None:
    assert asked_parts(query) == parts


@pytest.mark.parametrize(
    "query",
    [
        "",
        "What do Ann and Bob share?",
        "今天天气真好。谁是王磊？",
        "另外，谁是王磊？",
        "An also-ran? Android?",
    ],
)
def test_what_asks_for_one_thing_is_whole(query: str) -> None:
    assert asked_parts(query) == (query,)


def test_a_long_list_is_one_text() -> None:
    query = "？另外".join("abcdefgh"[: MOST_PARTS + 1])
    assert asked_parts(query) == (query,)
