import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.sealing import seal, unseal


@given(stamp=st.text(), data=st.binary())
def test_what_is_sealed_is_read_under_its_stamp(stamp: str, data: bytes) -> None:
    assert unseal(stamp, seal(stamp, data)) == data


def test_what_is_sealed_shows_nothing_and_is_never_the_same_twice() -> None:
    text = b"the safe is behind the picture"
    assert text not in seal("stamp", text)
    assert seal("stamp", text) != seal("stamp", text)


@pytest.mark.parametrize(
    "sealed",
    [b"", b"short", seal("another", b"text"), seal("stamp", b"text")[:-1]],
    ids=["nothing", "short", "another stamp", "cut off"],
)
def test_another_stamp_and_anything_else_is_refused(sealed: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unseal("stamp", sealed)
