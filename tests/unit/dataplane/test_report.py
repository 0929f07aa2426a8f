"""What a data plane tells of itself."""

from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from dataplane.changes import IndexProgress
from dataplane.examine import Finding
from dataplane.guards import BreakerReport
from dataplane.logic.breaker import BreakerState
from dataplane.policy_holder import PolicyHolder
from dataplane.ports import Examination, Problem
from dataplane.report import Calls, Reporter
from memplane.v1 import policy_pb2
from tests.integration.harness import FixtureClock


def reporter(calls: Calls, *projectors: Any) -> Reporter:
    given: Any = projectors
    return Reporter(
        PolicyHolder(), calls, given, [("record_store", "sqlite"), ("text_index", "edge")], FixtureClock(9_000_005)
    )


def test_calls_and_failures_are_counted_apart() -> None:
    calls = Calls()
    for code in (grpc.StatusCode.OK, grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND):
        calls.count("/m", code, 0.1)
    report = reporter(calls).report()
    assert (report.call_count, report.error_count) == (3, 1)
    assert report.policy_origin == policy_pb2.POLICY_ORIGIN_UNSPECIFIED


def index(**changes: Any) -> SimpleNamespace:
    """A healthy, level index in use."""
    values = {"name": "text_index", "target": "text_index:t", "counts": True, "last_error": "", "is_level": True}
    return SimpleNamespace(**{**values, "purge_due": False, **changes})


def test_an_index_tells_how_far_it_lags_and_what_is_wrong() -> None:
    made = reporter(Calls(), index(last_error="text_index: disk full"))
    made.note_progress([IndexProgress("text_index:t", 7, 3, 1, 5), IndexProgress("vector_index:m", 0, 9, 0, 5)])
    store, found = made.report().backends
    assert (store.backend, store.adapter, store.healthy, store.lag) == ("record_store", "sqlite", True, 0)
    assert (found.backend, found.healthy, found.detail, found.lag) == ("text_index", False, "text_index: disk full", 3)
    assert (found.dead_letters, found.oldest_wait.ToMicroseconds()) == (1, 9_000_000)


def test_what_an_examination_found_is_told_and_an_outage_makes_unhealthy() -> None:
    made = reporter(Calls(), index())
    evicts = Problem("EVICTS", "it evicts; set noeviction")
    made.findings = {
        "record_store": Finding(Examination("SQLite 3.40", (evicts,)), 0.0015),
        "text_index": Finding(Examination("Elasticsearch 8.19"), problem="connection refused"),
    }
    made.more_problems = ({"text_index": (Problem("INDEX_BEHIND", "late; wait"),)}, {})
    store, texts = made.report().backends
    assert [each.code for each in texts.problems] == ["INDEX_BEHIND"]
    assert (store.server, store.latency.ToMicroseconds(), store.healthy) == ("SQLite 3.40", 1_500, True)
    assert [(each.code, each.message) for each in store.problems] == [("EVICTS", "it evicts; set noeviction")]
    assert (texts.server, texts.healthy, texts.detail) == ("Elasticsearch 8.19", False, "connection refused")


@pytest.mark.parametrize(
    ("changes", "dead", "detail"),
    [
        ({}, 0, ""),
        ({"purge_due": True}, 0, "erased data awaits purging"),
        ({"purge_due": True}, 2, "erased data awaits purging"),
        ({"is_level": False}, 2, "being rebuilt"),
    ],
)
def test_a_healthy_index_tells_what_it_still_has_to_do(changes: dict[str, Any], dead: int, detail: str) -> None:
    made = reporter(Calls(), index(**changes))
    made.note_progress([IndexProgress("text_index:t", 7, 0, dead, None)])
    told = made.report().backends[1]
    assert (told.healthy, told.detail, told.dead_letters) == (True, detail, dead)


def test_of_several_indexes_the_one_in_use_is_told_of() -> None:
    coming = index(target="text_index:u", counts=False, last_error="text_index: disk full")
    told = reporter(Calls(), index(), coming).report().backends[1]
    assert (told.healthy, told.detail) == (True, "")


def test_refusals_that_go_on_are_told_beside_the_backends() -> None:
    made = reporter(Calls())
    assert [each.backend for each in made.report().backends] == ["record_store", "text_index"]
    made.overload = lambda: (Problem("OVERLOADED", "calls have been refused for 12 s; add data planes"),)
    *_, told = made.report().backends
    assert (told.backend, told.healthy, [each.code for each in told.problems]) == ("admission", True, ["OVERLOADED"])


def test_breakers_are_told_and_a_backend_whose_reads_are_not_tried_is_not_well() -> None:
    made = reporter(Calls(), index())
    breakers = {
        "record_store": [BreakerReport("writes", BreakerState.OPEN, 1.5, 2, "the disk is full")],
        "text_index": [BreakerReport("reads", BreakerState.OPEN, 2.0, 1, "does not answer in time")],
    }
    made.breakers_of = breakers.__getitem__
    store, texts = made.report().backends
    assert (store.healthy, texts.healthy) == (True, False)
    assert texts.detail == "reads are not tried for now: does not answer in time"
    (told,) = store.breakers
    assert (told.operations, told.state, told.opened_count) == ("writes", policy_pb2.BREAKER_STATE_OPEN, 2)
    assert (told.reason, told.since.ToMicroseconds()) == ("the disk is full", 9_000_005 - 1_500_000)


def test_the_report_tells_when_the_policy_came_and_the_control_plane_was_heard_last() -> None:
    holder = PolicyHolder()
    made = Reporter(holder, Calls(), (), [], FixtureClock())  # type: ignore[arg-type]  # no projectors
    assert not made.report().HasField("control_plane_time")
    holder.loaded_time_us, holder.heard_time_us = 5_000_000, 6_000_000
    report = made.report()
    assert (report.policy_load_time.seconds, report.control_plane_time.seconds) == (5, 6)
