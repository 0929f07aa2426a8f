"""Numbers made for tests, right by other people's check digits."""

from hypothesis import strategies as st
from stdnum import luhn
from stdnum.cn import ric, uscc
from stdnum.iso7064 import mod_97_10


def digits(size: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=size, max_size=size)


def _id_card(province: str, region: str, year: int, month: int, day: int, order: str) -> str:
    body = f"{province}{region}{year:04}{month:02}{day:02}{order}"
    return body + ric.calc_check_digit(body + "0")


ID_CARDS = st.builds(
    _id_card,
    st.sampled_from(["11", "31", "44", "65"]),
    digits(4),
    st.integers(1930, 2025),
    st.integers(1, 12),
    st.integers(1, 28),
    digits(3),
)
"""Resident ID cards of China."""


def _card(prefix: str, body: str) -> str:
    return prefix + body + luhn.calc_check_digit(prefix + body)


CREDIT_CARDS = st.builds(_card, st.just("4"), digits(14)) | st.builds(_card, st.just("37"), digits(12))
UNIONPAY_CARDS = st.builds(_card, st.sampled_from(["621700", "622202"]), digits(12))
MOBILES = st.builds("{}{}".format, st.sampled_from(["138", "159", "186", "199"]), digits(8))


def _iban(bank: str, account: str) -> str:
    body = f"{bank}{account}"
    return f"GB{mod_97_10.calc_check_digits(body + 'GB')}{body}"


IBANS = st.builds(_iban, st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=4, max_size=4), digits(14))


def _company(organisation: str) -> str:
    body = f"91110108{organisation}"
    return body + uscc.calc_check_digit(body)


COMPANIES = st.builds(_company, st.text("0123456789ABCDEFGHJKLMNPQRTUWXY", min_size=9, max_size=9))
