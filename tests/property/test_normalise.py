import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataplane.logic.normalise import content_hash, normalise_content, normalise_label
from dataplane.model import Kind

TRICKY = st.sampled_from(
    "\u200b\u200c\u200d\u202e\ufe0f\U000e0062\U000e007f\ufeff\x00\r\n \u0301\u0323\u0344👩🏽🏴❤की्م\u3164\ud800"
)
TEXTS = st.one_of(
    st.text(alphabet=st.characters()), st.text(alphabet=TRICKY), st.text(alphabet=st.characters() | TRICKY)
)


@given(TEXTS)
@example("a" + "\u0344" * 70)
@example("👩\u200d\u200b👩")
@settings(max_examples=200)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_content(text)
    assert normalise_content(once) == once
    label = normalise_label(text)
    assert normalise_label(label) == label


@given(TEXTS)
@settings(max_examples=200)
def test_what_comes_out_is_composed_encodable_and_free_of_controls(text: str) -> None:
    clean = normalise_content(text)
    clean.encode()
    assert unicodedata.is_normalized("NFC", clean)
    assert clean == clean.strip()
    assert not {"Cc", "Cs"} & {unicodedata.category(character) for character in clean if character not in "\n\t"}
    assert not set("\u200b\u202a\u202e\u2066\ufeff\u2060") & set(clean)


@given(st.text(alphabet=st.characters(categories=["L", "N"], max_codepoint=0x24F), min_size=1))
@settings(max_examples=100)
def test_plain_words_are_left_alone_but_for_composition(text: str) -> None:
    assert normalise_content(text) == unicodedata.normalize("NFC", text)


PARTS = st.tuples(st.text("ab.", max_size=4), st.text("ab.", max_size=4), st.sampled_from(Kind))


@given(PARTS, PARTS)
@settings(max_examples=200)
def test_hashes_are_equal_only_for_equal_parts(one: tuple[str, str, Kind], other: tuple[str, str, Kind]) -> None:
    assert (content_hash(*one) == content_hash(*other)) == (one == other)
