"""When an answer is late, and when nobody could have given one."""

from collections.abc import Sequence

import pytest

from tests.chaos.history import Entry
from tests.chaos.lateness import PROMISED_S, RETURNED_S, SLACK_S, violations


def call(start_s: float, end_s: float, deadline_s: float = PROMISED_S, **more: object) -> Entry:
    told = {"plane": 0, "reason": more.pop("reason", "")}
    code = str(more.pop("code", "OK"))
    return Entry(
        client=0, tenant=0, intent=0, method=str(more.pop("method", "search")), start_s=start_s, end_s=end_s,
        deadline_s=deadline_s, code=code, told=told, item=int(str(more.pop("item", 0))),
    )  # fmt: skip


def fault(start_s: float, end_s: float, target: str) -> Entry:
    asked = {"kind": "any", "target": target}
    return Entry(client=-1, tenant=-1, intent=0, method="fault", start_s=start_s, end_s=end_s, asked=asked)


def ended_by_client(deadline_s: float = PROMISED_S, **more: object) -> Entry:
    return call(10, 10 + deadline_s, deadline_s, code="DEADLINE_EXCEEDED", **more)


def late(*entries: Entry) -> Sequence[str]:
    return [text for _, text in violations(entries)]


def test_an_answer_after_the_deadline_is_late() -> None:
    assert late(call(0, 1.01 + SLACK_S, 1))
    assert not late(call(0, 0.99 + SLACK_S, 1))


def test_a_batch_is_late_once() -> None:
    assert len(late(*(call(0, 9, 1, method="write", item=item) for item in range(3)))) == 1


def test_a_silent_data_plane_is_late_though_its_client_gave_up_in_time() -> None:
    assert late(ended_by_client())


def test_a_deadline_that_the_service_told_itself_is_an_answer() -> None:
    assert not late(ended_by_client(reason="DEADLINE_TOO_SHORT"))


def test_less_time_than_the_stores_are_given_promises_nothing() -> None:
    assert not late(ended_by_client(PROMISED_S - 1))


@pytest.mark.parametrize("target", ["postgres", "redis", "control", "data-2"])
def test_a_fault_elsewhere_is_no_excuse(target: str) -> None:
    assert late(ended_by_client(), fault(9, 12, target))


@pytest.mark.parametrize("target", ["data-1", "data-1:texts"])
def test_a_data_plane_that_is_away_itself_answers_nothing(target: str) -> None:
    assert not late(ended_by_client(), fault(12, 13, target))
    assert not late(ended_by_client(), fault(8, 10.1 - RETURNED_S, target))
    assert late(ended_by_client(), fault(7, 9.9 - RETURNED_S, target))


def test_a_harness_that_stood_still_may_have_missed_the_answer() -> None:
    lag = Entry(client=-1, tenant=-1, intent=0, method="lag", start_s=14, end_s=14.5)
    assert not late(ended_by_client(), lag)
