import pytest

from dataplane.logic.speech import asks, named_speakers

PAIR = frozenset({"Caroline", "Melanie Jones", ""})


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What did Caroline research?", {"Caroline"}),
        ("what did CAROLINE's sister say", {"Caroline"}),
        ("Where does Melanie live?", {"Melanie Jones"}),
        ("Where does Melanie Jones live?", {"Melanie Jones"}),
        ("Is Jones at home?", set()),
        ("Who sang Sweet Carolines?", set()),
        ("What is new?", set()),
    ],
)
def test_a_speaker_is_named_by_the_whole_name_or_its_first_word(query: str, named: set[str]) -> None:
    assert named_speakers(query, PAIR) == named


def test_chinese_names_are_found_within_the_text() -> None:
    assert named_speakers("张曼婷喜欢什么书？", frozenset({"张曼婷", "王磊"})) == {"张曼婷"}


def test_where_all_are_named_none_stands_out() -> None:
    assert named_speakers("What do Ann and Bob share?", frozenset({"Ann", "Bob"})) == frozenset()
    assert named_speakers("What does Ann like?", frozenset({"Ann"})) == frozenset()


def test_roles_and_single_letters_are_no_names() -> None:
    assert (
        named_speakers("what did the user and the assistant say to J", frozenset({"user", "J", "x y"})) == frozenset()
    )


@pytest.mark.parametrize("text", ["How are you?", "你好吗？", 'He said: "Why?"', "Really?! Who?  "])
def test_a_text_that_ends_with_a_question_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ["", "Why? Because.", "I see", "谁知道呢。"])
def test_others_tell(text: str) -> None:
    assert not asks(text)
