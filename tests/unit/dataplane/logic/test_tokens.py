import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.tokens import MAX_TOKEN_LENGTH, identifiers, query_tokens, tokens


def finds(query: str, memory: str) -> bool:
    return not set(query_tokens(query)).isdisjoint(tokens(memory))


@pytest.mark.parametrize("query", ["精排", "精排模型", "rerank", "Rerank 精排", "模型", "配置"])
def test_a_word_is_found_inside_a_mixed_clause(query: str) -> None:
    assert finds(query, "我们最近配置的rerank精排模型是bge")


@pytest.mark.parametrize("word", ["精排", "张曼", "曼婷", "婷喜"])
def test_any_two_neighbouring_characters_are_found(word: str) -> None:
    assert finds(word, "精排" if word == "精排" else "张曼婷喜欢看科幻电影")


def test_a_name_is_found_though_the_segmenter_does_not_know_it() -> None:
    assert finds("欧阳蕤葳", "昨天和欧阳蕤葳吃饭")


def test_an_identifier_is_asked_for_whole() -> None:
    assert query_tokens("status of INV-2024/0031?") == ("status", "inv-2024/0031")
    assert not finds("X-200", "the X-2000 pump")
    assert not finds("X-200", "200 pumps of type X")
    assert finds("X-200", "pump (x-200)")


def test_an_identifier_is_found_by_its_parts_too() -> None:
    assert finds("invoice 0031", "INV-2024/0031")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INV-2024/0031 and inv-2024/0031", ("inv-2024/0031",)),
        ("发票INV-2024/0031已到", ("inv-2024/0031",)),
        ("write to ann@shop.example, host 10.0.0.12", ("ann@shop.example", "10.0.0.12")),
        ("call 138-0013-8000-1", ("138-0013-8000-1",)),
        ("self-care and/or a.py", ()),
        ("on 2023-05-08 or 5/8 at 3.14", ()),
        ("ＩＮＶ－２０２４", ("inv-2024",)),
        ("", ()),
    ],
)
def test_identifiers_name_something(text: str, expected: tuple[str, ...]) -> None:
    assert identifiers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("code SN00000007, unit z0k7n00007", ("sn00000007", "z0k7n00007")),
        ("Katzenbach7 and vm12", ("katzenbach7", "vm12")),
        ("item 10000007", ("10000007",)),
        ("电话13651039007的人", ("13651039007",)),
        ("订单号10000007天津发货", ("10000007",)),
        ("身份证11010119900307123X", ("11010119900307123x",)),
        ("邮编100084", ("100084",)),
        ("call 13651039000", ("13651039000",)),
    ],
)
def test_codes_without_separators_are_identifiers(text: str, expected: tuple[str, ...]) -> None:
    assert identifiers(text) == expected
    assert set(expected) <= set(tokens(text))
    assert set(expected) <= set(query_tokens(text))


@pytest.mark.parametrize(
    "text",
    [
        "100km at 30pm on the 2nd, 5kg, 4096mb, 10000m",
        "songs of the 1990s, in 2023, room 12, 2023年",
        "how many of the 10000 steps, 走了10000步, 15600000 in all",
        "12500 dollars, $12500, USD 12500, 12500€",
        "工资12345元, 走了23456步, 23456 people",
        "12,500 tickets",
        "the trip of 20230508",
        "1920x1080 for 1h30m in fy2023 or 2023q4",
        "mp3 in 4k",
    ],
)
def test_measures_amounts_and_dates_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


def test_english_is_stemmed_and_case_does_not_matter() -> None:
    assert finds("RUNNING", "she runs")
    assert tokens("Dances danced") == ("danc", "danc")


def test_a_compound_word_is_found_whole_and_by_its_parts() -> None:
    assert finds("self-care", "self care is fine")
    assert finds("care", "about self-care")


def test_stop_words_are_dropped_from_queries_unless_alone() -> None:
    assert query_tokens("What is the cat?") == ("cat",)
    assert query_tokens("我的猫在哪里") == ("猫",)
    assert query_tokens("who are you") == ("who", "are", "you")
    assert "the" in tokens("the cat")


@pytest.mark.parametrize("text", ["", " ", "*", '"', "~", "(", "，。！", "\u200b", "\ud83d", "👍"])
def test_text_without_words_has_no_tokens(text: str) -> None:
    assert tokens(text) == query_tokens(text) == ()


def test_scripts_without_spaces_or_segmenter_go_by_pairs() -> None:
    assert tokens("カタカナ") == ("カタ", "タカ", "カナ")
    assert finds("タカ", "カタカナ")
    assert tokens("サ") == ("サ",)


def test_long_tokens_are_cut_alike_in_memories_and_queries() -> None:
    long = "a1" * 1000
    assert query_tokens(long) == tokens(long) == (long[:MAX_TOKEN_LENGTH],)


@given(st.text())
def test_tokens_hold_no_white_space_and_are_never_empty(text: str) -> None:
    for token in (*tokens(text), *query_tokens(text), *identifiers(text)):
        assert token
        assert not any(character.isspace() for character in token)


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1))
def test_a_text_finds_itself(text: str) -> None:
    assert query_tokens(text) == () or finds(text, text)


@given(st.text())
def test_every_token_asked_for_is_in_an_index_of_the_same_text_or_has_a_part_there(text: str) -> None:
    asked = set(query_tokens(text))
    assert not asked or not asked.isdisjoint(tokens(text))


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"running dancers number {number} 精排模型" for number in range(50)]
    expected = [tokens(text) for text in texts]
    found: list[list[tuple[str, ...]]] = []

    def work() -> None:
        found.append([tokens(text) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8
