import pytest

from dataplane.logic.pairs.reading import read


@pytest.mark.parametrize(
    ("text", "who", "attribute", "value"),
    [
        ("I live in Oslo.", "self", "lives", "oslo"),
        ("I'm currently based in Oslo", "self", "lives", "oslo"),
        ("Well, my sister's home is in Oslo these days!", "self.sister", "lives", "oslo"),
        ("Anna lives in Leeds.", "anna", "lives", "leeds"),
        ("The user's name is Bob", "self", "name", "bob"),
        ("My favourite colour is blue", "self", "favourite colour", "blue"),
        ("My favorite color is blue", "self", "favourite colour", "blue"),
        ("Blue is my favourite colour.", "self", "favourite colour", "blue"),
        ("Chess is one of the things Tobias loves.", "tobias", "likes", "chess"),
        ("I was born on 3 March.", "self", "birthday", "3 march"),
        ("My mum can't eat walnuts because of an allergy.", "self.mother", "allergy", "walnuts"),
        ("ACME moved its headquarters to Kiel", "acme", "headquarters", "kiel"),
        ("我的手机号是13800138000", "self", "phone", "13800138000"),
        ("我的手机号是１３８００１３８０００", "self", "phone", "13800138000"),
        ("请记住,我妈妈的生日是三月五号。", "self.mother", "birthday", "三月五号"),
        ("小李住在成都", "小李", "lives", "成都"),
        ("我最喜欢的颜色是蓝色", "self", "favourite 颜色", "蓝色"),
        ("我的一个同事，他老家是吉林长春的。", "self.colleague", "hometown", "吉林长春"),
        ("我表姐身高一米七五呢", "self.表姐", "height", "一米七五"),
        ("用户对花生过敏", "self", "allergy", "花生"),
    ],
)
def test_a_plain_statement_is_taken_apart(text: str, who: str, attribute: str, value: str) -> None:
    frame = read(text).frame
    assert frame is not None
    assert (frame.who, frame.attribute, frame.value, frame.holds, frame.whole) == (who, attribute, value, True, True)


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("I no longer live in Oslo", "lives", "oslo"),
        ("I don't like tea", "likes", "tea"),
        ("I can't stand tea", "likes", "tea"),
        ("My sister isn't married", "marital", "married"),
        ("My birthday is not on 3 March", "birthday", "on 3 march"),
        ("我不住在成都了", "lives", "成都"),
        ("我讨厌香菜", "likes", "香菜"),
        ("我对虾不过敏", "allergy", "虾"),
    ],
)
def test_what_a_statement_denies_is_told(text: str, attribute: str, value: str) -> None:
    frame = read(text).frame
    assert frame is not None
    assert (frame.attribute, frame.value, frame.holds) == (attribute, value, False)


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday we walked along the river and talked about Oslo.",
        "The stand-up is on Monday",
        "haha ok",
        "",
        "?!",
        "好的，没问题",
        "昨天下雨了",
        "x" * 100_000,
        "我" * 100_000,
    ],
)
def test_what_is_no_plain_statement_has_no_frame(text: str) -> None:
    assert read(text).frame is None


@pytest.mark.parametrize("text", ["I live in Oslo and work in Bergen", "我喜欢爬山。昨天下雨了。"])
def test_what_says_more_than_one_fact_is_not_a_whole_frame_of_the_first(text: str) -> None:
    frame = read(text).frame
    assert frame is None or not frame.whole or "and work" in frame.value
