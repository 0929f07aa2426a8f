import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.formats import faults
from memplane.policy.model import WritePolicy

POLICY = WritePolicy()


def checks(text: str) -> list[str]:
    return [fault.check for fault in faults(text, POLICY.format_checks, POLICY.amount_words)]


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ("date", "Delivery is due on 2026-02-30"),
        ("date", "会议在13月5日"),
        ("date", "合同2023年2月29日到期"),
        ("date", "The audit is on 31 April"),
        ("date", "Signed on February 30, 2026"),
        ("time", "We meet at 25:61"),
        ("time", "明天26:00开会"),
        ("time", "下午25点集合"),
        ("percent", "Our market share is 120%"),
        ("percent", "出勤率为130%"),
        ("percent", "They asked 140 % of the users"),
        ("amount", "The dose is 50"),
        ("amount", "合同金额：50000"),
        ("name", "Dear XXX, the contract is ready"),
        ("name", "The contact is [name]"),
        ("name", "联系XX先生"),
        ("identifier", "Ticket OPS- was closed"),
        ("identifier", "the device is 550e8400-e29b-41d4-a716-44665544"),
        ("identifier", "身份证号 110105194912310021"),
    ],
)
def test_what_cannot_be_right_is_found(check: str, text: str) -> None:
    assert checks(text) == [check]


@pytest.mark.parametrize(
    "text",
    [
        "Delivery is due on 2026-02-28, 2024年2月29日, 31 March",
        "We won 98:95, ran it in 72:15 and read John 3:65",
        "Attendance rose to 120 % of last year's; sales grew by 300%",
        "The dose is 50 mg, 合同金额5万元",
        "It takes 13个月; May 50 people come in June",
        "Version 2024.15.30, size XXL, XX chromosomes, kisses xx",
        "Ticket OPS-4471, 550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_what_may_be_right_is_left_alone(text: str) -> None:
    assert checks(text) == []


def test_only_the_checks_of_the_policy_look() -> None:
    assert faults("On 2026-02-30 at 25:61", ("time",)) == faults("at 25:61", ("time",))
    assert faults("On 2026-02-30 at 25:61", ()) == ()


def test_the_number_of_a_person_is_not_repeated() -> None:
    (fault,) = faults("身份证号 110105194912310021", POLICY.format_checks)
    assert not any(character.isdigit() for character in fault.text)


@given(st.text(alphabet="0123456789-:/月日年点% atdose[name]X", max_size=60))
def test_any_text_can_be_checked(text: str) -> None:
    checks(text)
