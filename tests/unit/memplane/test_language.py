import pytest

from memplane.language import is_chinese


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("X-200 的保修期多长?", True),
        ("Halden Foods 什么时候续签合同?", True),
        ("What does 王伟 like to drink?", False),
        ("Où habite Zoé ?", False),
        ("INV-2024-0031", False),
        ("", False),
    ],
)
def test_the_language_of_a_text_is_that_of_most_of_its_words(text: str, *, chinese: bool) -> None:
    assert is_chinese(text) is chinese
