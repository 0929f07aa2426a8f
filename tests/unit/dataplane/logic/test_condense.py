import pytest

from dataplane.logic.condense import condense


def count_characters(text: str) -> int:
    return len(text)


def count_superadditive(text: str) -> int:
    return len(text) + len(text) ** 2 // 100


def test_a_text_that_fits_is_kept_as_it_is() -> None:
    assert condense(" any  text ", 20, count_characters) == " any  text "


def test_sentences_are_kept_whole_and_in_order() -> None:
    text = "The server is db-01.example.com. It was fine weather. The server needs 32 GB. Somebody laughed."
    assert condense(text, 58, count_characters) == "The server is db-01.example.com. The server needs 32 GB."


def test_chinese_is_cut_at_its_own_full_stops() -> None:
    text = "服务器地址是 db-01.example.cn。天气不错。服务器需要32GB内存。大家笑了。"
    assert condense(text, 40, count_characters) == "服务器地址是 db-01.example.cn。服务器需要32GB内存。"


def test_a_sentence_said_twice_is_kept_once() -> None:
    assert condense("Order 66 was sent. " * 5 + "Bye then.", 40, count_characters) == "Order 66 was sent. Bye then."


def test_a_decimal_point_or_a_host_name_ends_no_sentence() -> None:
    assert condense("Cost is 3.5 euros at a.example.com today. Bye now.", 42, count_characters).startswith(
        "Cost is 3.5 euros at"
    )


def test_one_endless_sentence_is_cut_to_its_beginning() -> None:
    assert condense("ab" * 1000, 10, count_characters) == "ababababab"


@pytest.mark.parametrize("max_tokens", [0, 1, 5, 30, 100])
@pytest.mark.parametrize("count", [count_characters, count_superadditive])
def test_the_limit_holds_whatever_the_tokenizer(max_tokens: int, count: object) -> None:
    assert callable(count)
    text = "One sentence here. 第二句话。Number 3 follows!\nLast?"
    assert count(condense(text, max_tokens, count)) <= max_tokens


def test_a_long_text_is_condensed_in_time_near_linear() -> None:
    condensed = condense("Order 66 was sent. 天气很好。" * 2000, 500, count_characters)
    assert 0 < len(condensed) <= 500


def test_nothing_is_left_of_blanks_that_do_not_fit() -> None:
    assert condense("     ", 2, count_characters) == ""
