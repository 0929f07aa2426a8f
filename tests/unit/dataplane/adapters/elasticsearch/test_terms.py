import pytest

from dataplane.adapters.elasticsearch.terms import BITS, MAX_SCORED, STEP, best_matches, indexed, term_of
from dataplane.logic.bm25 import term_weights


def weight_of(terms: list[str], token: str) -> float:
    """What the terms of a token stand for together."""
    bits = [int(term.rpartition("|")[2]) for term in terms if term.startswith(f"{token}|")]
    return float(STEP * ((token in terms) + sum(1 << bit for bit in bits)))


@pytest.mark.parametrize("length", [1, 5, 30, 300, 3000])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_terms_of_a_token_stand_for_its_weight(length: int, count: int) -> None:
    words = ["word"] * count + [f"w{number}" for number in range(length)]
    terms = indexed(words).split(" ")
    exact = term_weights({"word": count, **dict.fromkeys(words[count:], 1)})["word"]
    assert weight_of(terms, "word") == pytest.approx(exact, abs=STEP / 2 + 1e-9) or exact < STEP


def test_no_term_has_white_space_or_is_cut() -> None:
    for token in ("a b", "a|3", "\ud83d", "x" * 5000, "", "\u2028", "\x1c", "𠀀" * 101, "#a"):
        assert term_of(token).startswith("#")
        assert len(term_of(token)) == 33
    for token in ("inv-2024/0031", "精排", "a.b@c.d", "𠀀𠀀"):
        assert term_of(token) == token


def test_a_query_of_many_tokens_scores_by_the_rarest_and_matches_by_all() -> None:
    tokens = [f"t{number}" for number in range(10_000)]
    query = best_matches({token: float(number) for number, token in enumerate(tokens[:1000])}, tokens, [])
    clauses = query["bool"]["should"]
    assert len(clauses) == MAX_SCORED * (BITS + 1) < 1024 - 100
    assert clauses[0]["term"]["tokens"]["value"] == "t999"
    assert len(query["bool"]["filter"][0]["terms"]["tokens"]) == 10_000
