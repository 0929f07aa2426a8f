"""Consistency tokens and page tokens."""

import pytest

from dataplane.server.checks import Notes
from dataplane.server.tokens import consistency_token, page_token, read_consistency_token, read_page_token
from memplane.errors import InvalidField, PageTokenMismatch
from memplane.v1 import memory_service_pb2 as pb

QUERY = pb.ListMemoriesRequest(namespace="a", page_size=5)


def test_a_consistency_token_gives_its_position_back() -> None:
    notes = Notes()
    assert read_consistency_token(notes, consistency_token(42)) == 42
    assert read_consistency_token(notes, "") == 0
    notes.close()


@pytest.mark.parametrize("token", ["42", "c1.", "c1.-1", "c1.x", "c1." + "9" * 30, "c2.1", "c1.٤"])
def test_anything_else_is_no_consistency_token(token: str) -> None:
    notes = Notes()
    read_consistency_token(notes, token)
    with pytest.raises(InvalidField):
        notes.close()


def test_a_page_token_gives_its_row_back_to_the_same_query_whatever_the_page_size() -> None:
    token = page_token(QUERY, "ann", (7, "mem_1"))
    again = pb.ListMemoriesRequest(namespace="a", page_size=9, page_token=token)
    assert read_page_token(again, "ann") == (7, "mem_1")
    assert read_page_token(QUERY, "ann") is None


def test_a_page_token_of_somebody_else_is_refused() -> None:
    token = page_token(QUERY, "ann", (7, "mem_1"))
    with pytest.raises(PageTokenMismatch):
        read_page_token(pb.ListMemoriesRequest(namespace="a", page_token=token), "bob")


@pytest.mark.parametrize("token", ["x", "AAAA", "W10", "bnVsbA", "WyJhIiwxLDJd", "ünï", "W1tb" * 50_000])
def test_a_forged_page_token_is_refused(token: str) -> None:
    with pytest.raises(PageTokenMismatch):
        read_page_token(pb.ListMemoriesRequest(namespace="a", page_token=token), "ann")
