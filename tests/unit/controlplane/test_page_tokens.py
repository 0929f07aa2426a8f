import pytest

from controlplane.page_tokens import page_token, position_of
from memplane.errors import PageTokenMismatch


@pytest.mark.parametrize("position", ["", "7", "node-ü-记"])
def test_a_token_gives_its_position_back_to_its_query(position: str) -> None:
    assert position_of("list", page_token("list", position)) == position


def test_no_token_is_the_first_page() -> None:
    assert position_of("list", "") is None


@pytest.mark.parametrize("token", ["x", "made up", "\u200b", "AAAA", "=" * 8, page_token("other", "7")])
def test_any_other_text_is_no_token(token: str) -> None:
    with pytest.raises(PageTokenMismatch):
        position_of("list", token)
