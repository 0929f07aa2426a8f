import hashlib
import unicodedata

import pytest

from dataplane.logic.normalise import content_hash, normalise_content, normalise_label
from dataplane.model import Kind


@pytest.mark.parametrize(
    "text",
    [
        "👨‍👩‍👧‍👦",  # a family, joined
        "❤️‍🔥",  # a heart on fire: variation selector, then joiner
        "👩🏽‍💻",  # skin tone before the joiner
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",  # the flag of England, spelt in tags
        "می‌خواهم",  # Persian, with a non-joiner
        "क्‍ष",  # Devanagari, with a joiner
        "葛󠄀城",  # an ideograph with its variation selector
        "line one\n\tline two",
        "<|endoftext|>",
        "naïve café 中文",
    ],
)
def test_what_carries_meaning_stays(text: str) -> None:
    assert normalise_content(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\x00b\x07c\x7fd\x9b", "abcd"),
        ("a\ud83db", "ab"),
        ("a\u200bb\u2060c\ufeffd\u00ade", "abcde"),
        ("pay\u202eevil\u2066x\u200f", "payevilx"),
        ("a\u200db\u200cc", "abc"),
        ("hi\U000e0069\U000e0067", "hi"),
        ("🏴\U000e0067", "🏴"),
        ("a\ufe0f\ufe0fb", "a\ufe0fb"),
        (" \ufe0fa", "a"),
        ("a\r\nb\rc\u2028d\x85e", "a\nb\nc\nd\ne"),
        ("\u3000 padded \n", "padded"),
        ("e\u0301", "\u00e9"),
    ],
)
def test_what_hides_or_breaks_goes(text: str, clean: str) -> None:
    assert normalise_content(text) == clean


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u200d\ufeff", "\u3164", "\u2800\u2800", "\uffa0 \u115f", "\ufe0f", "\x00"]
)
def test_a_text_that_draws_nothing_is_empty(text: str) -> None:
    assert normalise_content(text) == ""


def test_combining_marks_beyond_the_sixty_fourth_go() -> None:
    clean = normalise_content("a" + "\u0323" * 1000 + "b")
    assert clean == unicodedata.normalize("NFC", "a" + "\u0323" * 64)[:65] + "b"


def test_a_label_is_one_line() -> None:
    assert normalise_label(" Ann\r\n\t Lee\u200b ") == "Ann Lee"


def test_a_hash_tells_namespace_content_and_kind_apart() -> None:
    one = content_hash("a.b", "c", Kind.FACT)
    assert len(one) == 64
    assert one == content_hash("a.b", "c", Kind.FACT)
    assert len({one, content_hash("a", ".bc", Kind.FACT), content_hash("a.b", "c", Kind.EPISODE)}) == 3
    assert one != hashlib.sha256(b"a.bcFACT").hexdigest()
