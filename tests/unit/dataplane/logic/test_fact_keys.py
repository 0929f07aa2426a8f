import pytest

from dataplane.logic.fact_keys import derived_from, keys_differ, weightier
from dataplane.model import Kind


@pytest.mark.parametrize(
    ("text", "speaker", "key"),
    [
        ("My favourite colour is blue", "", "auto:fact:self:favourite colour"),
        ("My favourite colour is blue", "Ann", "auto:fact:ann:favourite colour"),
        ("Ann lives in Leeds", "", "auto:fact:ann:lives"),
        ("我的手机号是13800138000", "", "auto:fact:self:phone"),
        ("我妈妈住在成都", "小王", "auto:fact:小王.mother:lives"),
        ("I used to live in Oslo", "", ""),
        ("I might live in Oslo", "", ""),
        ("Do I live in Oslo?", "", ""),
        ("I like tea", "", ""),
        ("She lives in Oslo", "", ""),
        ("The deadline is Friday", "", ""),
        ("我喜欢爬山", "", ""),
    ],
)
def test_a_plain_statement_of_a_known_person_has_a_key(text: str, speaker: str, key: str) -> None:
    assert derived_from(text, Kind.FACT, speaker) == (key, True)


def test_what_is_denied_is_told_with_its_key() -> None:
    assert derived_from("I no longer live in Oslo", Kind.FACT, "") == ("auto:fact:self:lives", False)


def test_a_given_key_and_a_derived_one_do_not_differ_and_the_given_one_stays() -> None:
    given, derived = "ann/home", "auto:fact:self:lives"
    assert not keys_differ(given, derived)
    assert not keys_differ(given, "")
    assert keys_differ(given, "ann/job")
    assert keys_differ(derived, "auto:fact:self:job")
    assert weightier(derived, given) == given
    assert weightier(given, derived) == given
    assert weightier("", derived) == derived
    assert weightier("ann/job", given) == "ann/job"
