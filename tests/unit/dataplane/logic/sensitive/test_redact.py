import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.logic.sensitive.redact import Texts, redact, redact_text
from dataplane.model import Redaction
from memplane.policy.sensitive import SensitiveActions, SensitivePolicy
from tests.unit.dataplane.logic.sensitive.made import CREDIT_CARDS, IBANS, ID_CARDS, MOBILES, UNIONPAY_CARDS

POLICY = SensitivePolicy()


def test_every_free_text_is_masked_and_told_by_type_and_field() -> None:
    clean, found = redact(
        Texts(
            content="手机13812345678，备用13912345678",
            speaker="13812345678",
            fact_key="phone/13812345678",
            tags=("vip", "a.b@qq.com"),
            source_ref="mailto:a.b@qq.com",
            metadata={"note": {"deep": ["SSN 233-61-3223", 7]}},
            structured={"卡": "6222028735805588376"},
        ),
        POLICY,
    )
    assert clean.content == "手机138****5678，备用139****5678"
    assert clean.speaker == "138****5678"
    assert clean.fact_key == "phone/138****5678"
    assert clean.tags == ("vip", "a***@qq.com")
    assert clean.metadata == {"note": {"deep": ["SSN ***-**-3223", 7]}}
    assert clean.structured == {"卡": "***************8376"}
    assert Redaction("PHONE_CN", "content", 2, "mask") in found
    assert {(item.type, item.field) for item in found} == {
        ("PHONE_CN", "content"),
        ("PHONE_CN", "speaker"),
        ("PHONE_CN", "fact_key"),
        ("EMAIL", "tags"),
        ("EMAIL", "source.ref"),
        ("US_SSN", "metadata"),
        ("BANK_CARD", "structured"),
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"ssn": 346277908.0}, {"ssn": "*****7908"}),
        ({"mobile": 13812345678}, {"mobile": "138****5678"}),
        ({"phone_number": "451 5986"}, {"phone_number": "*** **86"}),
        ({"password": "my dog's name"}, {"password": "[PASSWORD]"}),
        ({"dbPassword": "hunter2"}, {"dbPassword": "[PASSWORD]"}),
        ({"apiKey": "short"}, {"apiKey": "[API_KEY]"}),
        ({"13812345678": True}, {"138****5678": True}),
        ({"count": 13, "ratio": 0.5, "ok": True, "none": None}, {"count": 13, "ratio": 0.5, "ok": True, "none": None}),
        ({"order_id": "4111111111111111"}, {"order_id": "4111111111111111"}),
    ],
)
def test_values_are_read_with_their_key(given: dict[str, object], kept: dict[str, object]) -> None:
    assert redact(Texts(metadata=given), POLICY)[0].metadata == kept


def test_what_is_allowed_stays_and_what_is_rejected_or_reviewed_is_masked_too() -> None:
    policy = SensitivePolicy(actions=SensitiveActions(EMAIL="allow", PASSWORD="reject", IP="review"))
    clean, found = redact(Texts(content="a.b@qq.com 10.0.0.1 密码是Aa123456"), policy)
    assert clean.content == "a.b@qq.com 10.0.*.* 密码是[PASSWORD]"
    assert {(item.type, item.action) for item in found} == {("IP", "review"), ("PASSWORD", "reject")}


def test_a_policy_that_is_off_leaves_all() -> None:
    texts = Texts(content="13812345678")
    off = SensitivePolicy(enabled=False)
    assert redact(texts, off) == (texts, ())
    assert redact_text("13812345678", off) == "13812345678"


def test_a_reason_is_masked() -> None:
    assert redact_text("asked by 13812345678", POLICY) == "asked by 138****5678"


SECRETS = CREDIT_CARDS | UNIONPAY_CARDS | ID_CARDS | MOBILES | IBANS
PIECES = SECRETS | st.sampled_from(
    [
        "密码是Aa123456",
        "my password is x9!kk",
        "a.b@qq.com",
        "10.1.2.3",
        "SSN 233-61-3223",
        "+1 261 487 0735",
        "token: ",
    ]
)
GLUE = st.sampled_from([" ", "，", "和", "-", ".", "@", " is ", "：", "", "*", "\n", "4111 "])


@settings(max_examples=200)
@given(st.lists(st.tuples(PIECES, GLUE), min_size=1, max_size=8))
def test_redacting_twice_changes_nothing(pieces: list[tuple[str, str]]) -> None:
    text = "".join(piece + glue for piece, glue in pieces)
    clean, _ = redact(Texts(content=text, tags=(text,), metadata={"password": text, "k": [text]}), POLICY)
    assert redact(clean, POLICY) == (clean, ())


@settings(max_examples=200)
@given(st.text(max_size=200), SECRETS, st.text(max_size=200))
def test_a_value_never_stays_whole_where_it_stands_by_itself(before: str, value: str, after: str) -> None:
    assert value not in redact_text(f"{before}，{value}，{after}".replace(value[:4] + value, "x"), POLICY)
