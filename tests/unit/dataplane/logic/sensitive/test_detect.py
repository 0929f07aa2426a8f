"""What is found, by type: text, what of it, and the type; and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.sensitive.detect import detect
from dataplane.logic.sensitive.finding import Finding, apart
from tests.unit.dataplane.logic.sensitive.made import CREDIT_CARDS, IBANS, ID_CARDS, MOBILES, UNIONPAY_CARDS


def found(text: str) -> list[tuple[str, str]]:
    return [(each.type, text[each.start : each.end]) for each in detect(text)]


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("我爱人手机１３８１２３４５６７８谢谢", "１３８１２３４５６７８", "PHONE_CN"),
        ("+86-138-1234-5678", "+86-138-1234-5678", "PHONE_CN"),
        ("(0755)26543210转803", "(0755)26543210转803", "PHONE_CN"),
        ("座机 010 6234 5678", "010 6234 5678", "PHONE_CN"),
        ("1 3 8 1 2 3 4 5 6 7 8", "1 3 8 1 2 3 4 5 6 7 8", "PHONE_CN"),
        ("Call me at 415-555-2671.", "415-555-2671", "PHONE_US"),
        ("at +1-903-140-4508x769 or", "+1-903-140-4508x769", "PHONE_US"),
        ("+44 20 7946 0958", "+44 20 7946 0958", "PHONE"),
        ("Mobile: 451 5986", "451 5986", "PHONE"),
        ("781 1704 office", "781 1704", "PHONE"),
        ("卡号6228480402564890018开户", "6228480402564890018", "BANK_CARD"),
        ("4111 1111 1111 1111 1226 123", "4111 1111 1111 1111", "CREDIT_CARD"),
        ("my amex 3782 822463 10005", "3782 822463 10005", "CREDIT_CARD"),
        ("card number 630427373398 is lost", "630427373398", "CREDIT_CARD"),
        ("身份证：110101199003077758", "110101199003077758", "ID_CARD_CN"),
        ("身份证 110101 19900307 7758", "110101 19900307 7758", "ID_CARD_CN"),
        ("身份证号是330106199710056326，", "330106199710056326", "ID_CARD_CN"),
        ("税号 91110108551385082Q", "91110108551385082Q", "USCC_CN"),
        ("护照号EE7228033", "EE7228033", "PASSPORT_CN"),
        ("passport number is 123456789", "123456789", "PASSPORT"),
        ("京A·12345停在楼下", "京A·12345", "PLATE_CN"),
        ("DE89 3704 0044 0532 0130 00 please", "DE89 3704 0044 0532 0130 00", "IBAN"),
        ("SSN: 078-05-1120", "078-05-1120", "US_SSN"),
        ("my ITIN is 912-70-1234", "912-70-1234", "US_ITIN"),
        ("NHS number 943 476 5919", "943 476 5919", "UK_NHS"),
        ("routing number 021000021", "021000021", "BANK_ACCOUNT"),
        ("my driver's license number is 2270-66-1551", "2270-66-1551", "US_DRIVER_LICENSE"),
        ("邮箱是zhang.san@qq.com，", "zhang.san@qq.com", "EMAIL"),
        ("ip 192.168.1.1:8080", "192.168.1.1", "IP"),
        ("at fe80::1ff:fe23:4567:890a.", "fe80::1ff:fe23:4567:890a", "IP"),
        ("mac 00:1A:2B:3C:4D:5E", "00:1A:2B:3C:4D:5E", "MAC_ADDRESS"),
        ("1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "CRYPTO_WALLET"),
        ("see https://example.com/a?b=1.", "https://example.com/a?b=1", "URL"),
        ("key AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "API_KEY"),
        ("密钥：a8f5f167f44f4964e6c998dee827110c", "a8f5f167f44f4964e6c998dee827110c", "API_KEY"),
        ("登录密码改成Aa123456了", "Aa123456", "PASSWORD"),
        ("the password for my router is Tp-link2020", "Tp-link2020", "PASSWORD"),
        ("user admin, password 8X4wEB_0yv3ta.", "8X4wEB_0yv3ta", "PASSWORD"),
        ("mysql://root:s3cr3t@db:3306", "s3cr3t", "PASSWORD"),
        ("微信号是wx_ia6xau6w，", "wx_ia6xau6w", "WECHAT"),
        ("QQ号 12345678", "12345678", "QQ"),
        ("my zip code is 35350", "35350", "ZIP_CODE"),
        ("生日是1990年3月4日", "1990年3月4日", "DATE_OF_BIRTH"),
        ("住在北京市海淀区中关村大街27号院3号楼", "北京市海淀区中关村大街27号院3号楼", "ADDRESS"),
        ("at 97 Lincoln Street. He", "97 Lincoln Street", "ADDRESS"),
    ],
)
def test_what_is_sensitive_is_found(text: str, value: str, type_: str) -> None:
    assert found(text) == [(type_, value)]


@pytest.mark.parametrize(
    "text",
    [
        "订单号642986084016447603已经发货了。",
        "order 4111111111111111 shipped",
        "ISBN 978-7-111-54742-6",
        "会议 ID 138 1234 5678",
        "快递单号SF609015663670。",
        "客服电话 400-820-8820",
        "彩票买了 07 66 13 69，没中。",
        "version 10.2.3.4 is out",
        "I ran 26133 steps today.",
        "timestamp 1700000000000",
        "UUID 550e8400-e29b-41d4-a716-446655440000",
        "The commit is 950a3a1423080981f0b2e49f76671b638c768a1b.",
        "I forgot my password, how do I reset it?",
        "My password is too long",
        "密码是什么？密码忘了",
        "password = apis.show_passwords(user)",
        "key takeaways include 20240115-roadmap-review",
        "my passport expires in 2028",
        "we met on 2023 10 12 at 12 30, call 2023-10-12",
        "138****5678, j***@qq.com, **** **** **** 9740, 密码是[PASSWORD]",
    ],
)
def test_what_only_looks_sensitive_is_not(text: str) -> None:
    assert found(text) == []


def test_a_private_key_is_found_whole_and_to_the_end_where_it_is_cut_off() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE 13812345678\n-----END RSA PRIVATE KEY-----"
    assert found(f"key: {key} ok") == [("PRIVATE_KEY", key)]
    assert found(key[:50]) == [("PRIVATE_KEY", key[:50])]


SURROUNDINGS = st.sampled_from(
    [("", ""), ("我的", "，记一下"), ("记住", "吧"), ("It is ", "."), ("（", "）"), ("x: ", "\n")]
)
CUTS = st.sampled_from(["", " ", "-"])


def grouped(number: str, size: int, separator: str) -> str:
    return separator.join(number[start : start + size] for start in range(0, len(number), size))


def widened(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if letter.isdecimal() else letter for letter in text)


@given(SURROUNDINGS, CREDIT_CARDS | UNIONPAY_CARDS, CUTS, st.booleans())
def test_cards_are_found_however_they_are_written(around: tuple[str, str], card: str, cut: str, wide: bool) -> None:
    written = grouped(card, 4, cut)
    written = widened(written) if wide else written
    assert written in {value for _, value in found(written.join(around))}


@given(SURROUNDINGS, ID_CARDS, st.booleans())
def test_id_cards_are_found(around: tuple[str, str], number: str, wide: bool) -> None:
    written = widened(number) if wide else number
    assert ("ID_CARD_CN", written) in found(written.join(around))


@given(SURROUNDINGS, MOBILES, CUTS)
def test_mobiles_are_found(around: tuple[str, str], number: str, cut: str) -> None:
    written = cut.join((number[:3], number[3:7], number[7:]))
    assert ("PHONE_CN", written) in found(written.join(around))


@given(SURROUNDINGS, IBANS, CUTS)
def test_ibans_are_found(around: tuple[str, str], code: str, cut: str) -> None:
    written = grouped(code, 4, cut)
    assert ("IBAN", written) in found(written.join(around))


@given(st.text(max_size=300))
def test_any_text_gives_findings_in_order_and_apart(text: str) -> None:
    last = 0
    for each in detect(text):
        assert last <= each.start < each.end <= len(text)
        last = each.end


def test_of_findings_that_overlap_the_heavier_stands_then_the_longer() -> None:
    light, heavy, apart_from_both = Finding("A", 0, 9, 1), Finding("B", 2, 5, 2), Finding("C", 6, 8, 1)
    assert apart([light, heavy, apart_from_both]) == [heavy, apart_from_both]
    assert apart([Finding("A", 0, 3), Finding("B", 0, 5)]) == [Finding("B", 0, 5)]
