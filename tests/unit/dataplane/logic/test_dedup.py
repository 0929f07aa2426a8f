import json
import os
from pathlib import Path

import pytest

from dataplane.logic.dedup import Neighbour, find_met, says_the_same
from dataplane.logic.pairs.compare import Relation
from dataplane.pair_model import shipped_pair_model
from memplane.policy.model import WritePolicy
from tests.unit.dataplane.logic.examples import a_memory

POLICY = WritePolicy()
MODEL = shipped_pair_model()


def find_same(content: str, fact_key: str, neighbours: list[Neighbour], policy: WritePolicy) -> Neighbour | None:
    met = find_met(content, fact_key, neighbours, policy, MODEL)
    return met.neighbour if met is not None and met.relation is Relation.SAME else None


def neighbour(content: str, similarity: float, memory_id: str = "mem_1", fact_key: str = "") -> Neighbour:
    return Neighbour(a_memory(memory_id=memory_id, fact_key=fact_key), content, similarity)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My birthday is 5 February.", "My birthday is 5 March."),
        ("我的生日是2月5号。", "我的生日是2月6号。"),
        ("每周三开会", "每周四开会"),
        ("The limit is 10,000 euros", "The limit is 100,000 euros"),
        ("She has two cats", "She has three cats"),
        ("The gateway is vpn1.example.com", "The gateway is vpn2.example.com"),
        ("Ticket OPS-12 is closed", "Ticket OPS-21 is closed"),
        ("I like tea", "I don't like tea"),
        ("I eat meat", "I no longer eat meat"),
        ("我喜欢咖啡", "我不喜欢咖啡了"),
        ("周末要加班", "周末别加班"),
        ("My manager is Dana.", "My manager is Omar."),
        ("我的经理是王芳", "我的经理是李敏"),
        ("我住在成都", "我住在杭州"),
        ("My boss is based here", "I am based here"),
        ("我的上司是程序员", "我的同事是程序员"),
        ("我表姐是硕士", "我表姐是博士"),
        ("The stand-up is in the blue room", "The stand-up is in the green room"),
        ("我讨厌香菜", "我讨厌芹菜"),
        ("We ship to Oslo", "We are shipping from Oslo"),
        ("Ann bought the old house", "Ann has sold the house"),
        ("股票涨了很多", "股票今天跌了"),
        ("订单系统用的是MySQL数据库", "订单系统用的是Oracle数据库"),
    ],
)
def test_a_slot_that_differs_tells_two_texts_apart(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I am allergic to peanuts.", "I'm allergic to peanuts!"),
        ("I have 2 cats", "I have two cats"),
        ("今天是三月五日", "今天是3月5号"),
        ("我父亲的生日是在12月19日。", "我爸爸的生日是12月19号。"),
        ("他人特别好", "他人很好"),
        ("我家乡在苏州", "我老家是苏州"),
        ("My dad lives in Leeds.", "My father lives in Leeds."),
        ("The limit is 10,000 euros", "The limit is 10000 euros"),
        ("差不多每天都跑步", "每天都跑步"),
    ],
)
def test_a_paraphrase_says_the_same(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert says_the_same(other, one)


def test_the_most_similar_that_says_the_same_is_found() -> None:
    found = find_same(
        "I am allergic to peanuts",
        "",
        [
            neighbour("I'm allergic to peanuts", 0.96, "mem_a"),
            neighbour("I'm not allergic to peanuts", 0.99, "mem_b"),
            neighbour("I am allergic to peanuts!", 0.97, "mem_c"),
        ],
        POLICY,
    )
    assert found is not None
    assert found.memory.memory_id == "mem_c"


def test_equal_similarity_goes_to_the_lower_id() -> None:
    found = find_same("x", "", [neighbour("x", 1.0, "mem_b"), neighbour("x", 1.0, "mem_a")], POLICY)
    assert found is not None
    assert found.memory.memory_id == "mem_a"


def test_below_the_policys_similarity_nothing_is_the_same() -> None:
    assert find_same("x", "", [neighbour("x", 0.94)], POLICY) is None
    assert find_same("x", "", [neighbour("x", 0.94)], WritePolicy(dedup_similarity=0.9)) is not None


def test_different_fact_keys_never_merge_and_an_absent_one_may() -> None:
    assert find_same("x", "ann.drink", [neighbour("x", 1.0, fact_key="ann.food")], POLICY) is None
    assert find_same("x", "ann.drink", [neighbour("x", 1.0, fact_key="ann.drink")], POLICY) is not None
    assert find_same("x", "", [neighbour("x", 1.0, fact_key="ann.food")], POLICY) is not None


def test_nothing_merges_when_dedup_is_off() -> None:
    assert find_same("x", "", [neighbour("x", 1.0)], WritePolicy(dedup=False)) is None


def share_that_says_the_same(pairs: list[dict[str, str]], *relations: str) -> float:
    told = [says_the_same(pair["a"], pair["b"]) for pair in pairs if pair["relation"] in relations]
    return sum(told) / len(told)


@pytest.mark.data
@pytest.mark.parametrize(("name", "most_conflicts"), [("memdaily_pairs_zh", 0.06), ("conflict_en_own", 0.20)])
def test_before_similarity_is_asked_slots_and_order_keep_most_conflicts_apart(name: str, most_conflicts: float) -> None:
    folder = os.environ.get("MEMPLANE_EVAL_DATA")
    if not folder:
        pytest.skip("MEMPLANE_EVAL_DATA is not set")
    lines = Path(folder, name, "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    assert share_that_says_the_same(pairs, "conflict") <= most_conflicts
    assert share_that_says_the_same(pairs, "other_subject", "other_subject_same_attr") <= 0.01
    assert share_that_says_the_same(pairs, "duplicate") >= 0.65
