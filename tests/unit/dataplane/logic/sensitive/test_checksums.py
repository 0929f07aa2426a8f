from hypothesis import given
from hypothesis import strategies as st
from stdnum import iban as other_iban
from stdnum import luhn as other_luhn
from stdnum.cn import uscc as other_uscc
from stdnum.gb import nhs as other_nhs
from stdnum.us import itin as other_itin
from stdnum.us import rtn as other_routing

from dataplane.logic.sensitive import checksums
from tests.unit.dataplane.logic.sensitive.made import COMPANIES, IBANS, ID_CARDS, digits


@given(st.integers(2, 19).flatmap(digits))
def test_luhn_is_what_others_compute(number: str) -> None:
    assert checksums.luhn(number) == other_luhn.is_valid(number)


@given(ID_CARDS)
def test_an_id_card_has_one_right_last_character(number: str) -> None:
    assert [last for last in "0123456789X" if checksums.id_card_cn(number[:17] + last)] == [number[17]]


def test_an_id_card_needs_a_province_and_a_day_that_exist() -> None:
    assert checksums.id_card_cn_shape("110101199002280011")
    assert not checksums.id_card_cn_shape("110101199002300011")
    assert not checksums.id_card_cn_shape("990101199002280011")
    assert not checksums.id_card_cn_shape("110101179002280011")


@given(COMPANIES)
def test_a_company_code_is_what_others_compute(code: str) -> None:
    assert checksums.uscc(code)
    wrong = code[:17] + ("0" if code[17] != "0" else "1")
    assert checksums.uscc(wrong) == other_uscc.is_valid(wrong)


def test_the_organisation_code_inside_has_a_check_character_of_its_own() -> None:
    assert checksums.organisation_code("551385082")
    assert not checksums.organisation_code("551385083")


@given(IBANS)
def test_an_iban_is_what_others_compute(code: str) -> None:
    assert checksums.iban(code)
    other = code[:2] + "00" + code[4:]
    assert checksums.iban(other) == other_iban.is_valid(other, check_country=False)


def test_every_country_known_to_others_has_the_same_length() -> None:
    known = (
        "DE89370400440532013000",
        "FR1420041010050500013M02606",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    )
    assert all(map(checksums.iban, known))
    assert not checksums.iban("DE8937040044053201300")


@given(digits(10))
def test_nhs_numbers_are_what_others_compute(number: str) -> None:
    assert checksums.nhs(number) == other_nhs.is_valid(number)


@given(digits(9))
def test_routing_numbers_are_what_others_compute(number: str) -> None:
    assert checksums.routing(number) == other_routing.is_valid(number)


@given(st.integers(900, 999), st.integers(66, 99))
def test_taxpayer_numbers_are_what_others_accept(area: int, group: int) -> None:
    assert checksums.itin(area, group) == other_itin.is_valid(f"{area:03}{group:02}1234")


def test_taxpayer_numbers_of_the_newer_groups_count_too() -> None:
    assert checksums.itin(912, 50)
    assert not checksums.itin(912, 49)
    assert not checksums.itin(899, 70)


def test_social_security_numbers_that_are_never_issued_are_none() -> None:
    assert checksums.ssn(233, 61, 3223)
    assert not any([checksums.ssn(0, 1, 1), checksums.ssn(666, 1, 1), checksums.ssn(900, 1, 1), checksums.ssn(1, 0, 1)])
