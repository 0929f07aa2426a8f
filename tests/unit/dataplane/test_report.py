"""What a data plane tells of itself."""

from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from dataplane.policy_holder import PolicyHolder
from dataplane.report import Calls, Reporter
from memplane.v1 import policy_pb2


def reporter(calls: Calls, *projectors: Any) -> Reporter:
    given: Any = projectors
    return Reporter(PolicyHolder(), calls, given, [("record_store", "sqlite"), ("text_index", "edge")])


def test_calls_and_failures_are_counted_apart() -> None:
    calls = Calls()
    for code in (grpc.StatusCode.OK, grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND):
        calls.count("/m", code)
    report = reporter(calls).report()
    assert (report.call_count, report.error_count) == (3, 1)
    assert report.policy_origin == policy_pb2.POLICY_ORIGIN_UNSPECIFIED


def test_an_index_tells_how_far_it_lags_and_what_is_wrong() -> None:
    behind = SimpleNamespace(name="text_index", position=7, last_error="text_index: disk full")
    made = reporter(Calls(), behind)
    made.last_position = 10
    store, index = made.report().backends
    assert (store.backend, store.adapter, store.healthy, store.lag) == ("record_store", "sqlite", True, 0)
    assert (index.backend, index.healthy, index.detail, index.lag) == ("text_index", False, "text_index: disk full", 3)


@pytest.mark.parametrize(
    ("is_level", "purge_due", "detail"),
    [(True, False, ""), (True, True, "erased data awaits purging"), (False, True, "being rebuilt")],
)
def test_a_healthy_index_tells_what_it_still_has_to_do(is_level: bool, purge_due: bool, detail: str) -> None:
    index = SimpleNamespace(name="text_index", position=0, last_error="", is_level=is_level, purge_due=purge_due)
    told = reporter(Calls(), index).report().backends[1]
    assert (told.healthy, told.detail) == (True, detail)
