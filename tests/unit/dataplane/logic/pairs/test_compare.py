import pytest

from dataplane.logic.pairs.compare import Relation, relation
from dataplane.logic.pairs.reading import read
from dataplane.pair_model import shipped_pair_model

MODEL = shipped_pair_model()


def related(one: str, other: str, similarity: float = 0.95) -> Relation:
    a, b = read(one), read(other)
    found = relation(a, b, similarity, MODEL)
    assert relation(b, a, similarity, MODEL) is found
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Oslo.", "My home is in Oslo."),
        ("I was born on 3 March.", "My birthday is March 3rd."),
        ("My sister works as a nurse", "By profession my sister is a nurse"),
        ("我妈妈的生日是三月五日", "我母亲是3月5号出生的。"),
        ("我身高一米七五", "我的身高是175厘米"),
        ("我的手机号是13800138000", "我手机号码是１３８００１３８０００。"),
        ("我在广东深圳上班", "我在深圳工作呢，就是广东的那个深圳。"),
    ],
)
def test_one_fact_in_other_words_is_the_same(one: str, other: str) -> None:
    assert related(one, other) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Oslo.", "My home is in Bergen."),
        ("My birthday is 3 March.", "I was born on 4 March."),
        ("I live in Oslo", "I no longer live in Oslo"),
        ("I am allergic to peanuts", "I'm not allergic to peanuts"),
        ("我的手机号是13800138000", "我的手机号是13900139000"),
        ("我喜欢咖啡", "我不喜欢咖啡了"),
        ("我住在成都", "我搬到杭州了"),
    ],
)
def test_two_values_of_one_attribute_contradict_each_other(one: str, other: str) -> None:
    assert related(one, other) is Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "I like hiking"),
        ("I am allergic to peanuts", "I am allergic to shellfish"),
        ("I live in Oslo", "My brother lives in Bergen"),
        ("I live in Oslo", "I work as a nurse"),
        ("I live in Oslo", "I used to live in Bergen"),
        ("I live in Oslo", "I want to live in Bergen"),
        ("I live in Oslo", "I do not live in Bergen"),
        ("Ticket OPS-12 is closed", "Ticket OPS-21 is closed"),
        ("我喜欢爬山", "我喜欢游泳"),
        ("我爸爸住在成都", "我妈妈住在杭州"),
        ("我住在成都", "我以前住在杭州"),
        ("我的职业是护士", "我的手机号是13800138000"),
    ],
)
def test_two_facts_that_stand_beside_each_other_are_neither(one: str, other: str) -> None:
    assert related(one, other) not in {Relation.SAME, Relation.CONTRADICTS}
