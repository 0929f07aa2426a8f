"""A masked form shows no more than its row in the table says."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.sensitive import mask as masking
from dataplane.logic.sensitive.mask import mask
from memplane.policy.sensitive import SensitiveActions

ROW = re.compile(r"^\| ([A-Z_, ]+) \|", re.MULTILINE)
WHOLE = ("API_KEY", "PRIVATE_KEY", "PASSWORD", "URL", "ADDRESS", "ZIP_CODE", "DATE_OF_BIRTH")


@pytest.mark.parametrize(
    ("type_", "value", "form"),
    [
        ("PHONE_CN", "13812345678", "138****5678"),
        ("PHONE_CN", "+86 138 1234 5678", "+86 138 **** 5678"),
        ("PHONE_CN", "0571-88001234", "0571-****1234"),
        ("PHONE_US", "(629) 318-5788", "(***) ***-5788"),
        ("PHONE", "451 5986", "*** **86"),
        ("ID_CARD_CN", "36070019500507116X", "360***********116X"),
        ("BANK_CARD", "6222 0237 5855 8226 098", "**** **** **** ***6 098"),
        ("CREDIT_CARD", "４１１１１１１１１１１１９７４０", "************９７４０"),
        ("IBAN", "GB29PBPI13748477718341", "GB****************8341"),
        ("US_SSN", "233-61-3223", "***-**-3223"),
        ("PASSPORT_CN", "EE7228033", "*******33"),
        ("PLATE_CN", "川D·VL2J3", "川D·****3"),
        ("EMAIL", "josewhite@163.com", "j***@163.com"),
        ("EMAIL", "a@163.com", "***@163.com"),
        ("IP", "157.0.249.12", "157.0.*.*"),
        ("IP", "fe80::1ff:fe23:4567:890a", "fe80::*:*:*:*"),
        ("QQ", "12345678", "12****78"),
        ("QQ", "12345", "***45"),
        ("MAC_ADDRESS", "00:1A:2B:3C:4D:5E", "00:1A:2B:**:**:**"),
        ("PASSWORD", "Qwe9186!!", "[PASSWORD]"),
        ("API_KEY", "AKIAIOSFODNN7EXAMPLE", "[API_KEY]"),
    ],
)
def test_forms_are_as_the_table_says(type_: str, value: str, form: str) -> None:
    assert mask(type_, value) == form


def test_every_type_has_a_row_or_is_hidden_whole() -> None:
    told = {name.strip() for row in ROW.findall(masking.__doc__ or "") for name in row.split(",")} - {""}
    assert told | set(WHOLE) == set(SensitiveActions.model_fields)


SHOWN = sorted(set(SensitiveActions.model_fields) - set(WHOLE) - {"EMAIL", "IP", "PHONE_CN"})


@given(st.sampled_from(SHOWN), st.text("0123456789abcXYZ -", min_size=4, max_size=40).filter(lambda text: text.strip()))
def test_at_most_half_of_a_value_stays(type_: str, value: str) -> None:
    size = sum(map(str.isalnum, value))
    form = mask(type_, value)
    assert len(form) == len(value)
    assert sum(map(str.isalnum, form)) <= size // 2


@given(st.from_regex(r"\A1[3-9][0-9]{9}\Z"))
def test_four_digits_of_a_mobile_are_hidden(number: str) -> None:
    assert mask("PHONE_CN", number) == f"{number[:3]}****{number[-4:]}"


@given(st.sampled_from(WHOLE), st.text(min_size=1, max_size=60))
def test_of_a_secret_nothing_stays(type_: str, value: str) -> None:
    assert mask(type_, value) == f"[{type_}]"


@given(st.from_regex(r"\A[a-z0-9.]{2,20}@[a-z]{2,10}\.com\Z"))
def test_of_an_address_one_letter_and_the_domain_stay(value: str) -> None:
    local, domain = value.split("@")
    assert mask("EMAIL", value) == f"{local[0]}***@{domain}"
