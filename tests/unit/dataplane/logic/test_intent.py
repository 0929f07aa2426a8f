import pytest

from dataplane.logic.intent import read_intent

WORDS = ("现在", "最新", "now", "latest", "current")


@pytest.mark.parametrize(
    "query",
    ["what do I drink now?", "NOW", "The Latest price", "我现在住在哪里", "最新报价", "价格now是多少", "current_price"],
)
def test_recency_words_are_heard_in_both_languages(query: str) -> None:
    assert read_intent(query, WORDS).wants_recent


@pytest.mark.parametrize("query", ["do you know Ann?", "snow in Oslo", "currently", "电流是多少", "", "nowhere"])
def test_a_word_within_a_word_is_not_heard(query: str) -> None:
    assert not read_intent(query, WORDS).wants_recent


def test_recency_words_are_the_policys() -> None:
    assert read_intent("what is new?", ("new",)).wants_recent
    assert not read_intent("what do I drink now?", ()).wants_recent
    assert read_intent("c++ today?", ("C++",)).wants_recent


def test_identifiers_are_read() -> None:
    assert read_intent("who closed INV-2024/0031?", WORDS).identifiers == ("inv-2024/0031",)
    assert read_intent("谁的电话是13651039007?", WORDS).identifiers == ("13651039007",)
    assert read_intent("who closed it?", WORDS).identifiers == ()
    assert read_intent("how many of the 10000 steps did I walk in 2023?", WORDS).identifiers == ()
