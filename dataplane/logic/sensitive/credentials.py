"""Keys, tokens, private keys and passwords.

A key is known by its shape: the prefixes of common issuers, JSON web tokens (RFC 7519), PEM. Where it is called one,
any long text of mixed characters is: at least 16 characters, letters and digits, and 3 bits a character (Shannon's
entropy of its characters; English words lie below, random base 64 and hexadecimal of that length above).

A password is what follows its name and a link: 密码是 …, "the password for x is …", pwd=…. Without a link, or with
"is", it must not look like a word: a digit, a sign inside, or capitals inside.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final

from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded

MIN_ENTROPY: Final = 3.0
_LEFT: Final = r"(?<![0-9A-Za-z_*])"
_RIGHT: Final = r"(?![0-9A-Za-z])"

_SHAPES: Final = re.compile(
    _LEFT
    + "(?:"
    + "|".join(
        (
            r"sk-(?:ant-|proj-|or-|live-|test-|svcacct-)?[A-Za-z0-9_\-]{20,300}",  # OpenAI, Anthropic and kin
            r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA)[A-Z0-9]{16}",  # AWS
            r"gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}|gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_\-]{16,255}",
            r"xox[abceoprs]-[A-Za-z0-9\-]{12,255}|xapp-[A-Za-z0-9\-]{20,255}",  # Slack
            r"AIza[A-Za-z0-9_\-]{30,60}|ya29\.[A-Za-z0-9_\-]{20,1000}|GOCSPX-[A-Za-z0-9_\-]{20,60}",  # Google
            r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9]{16,255}",  # Stripe
            r"SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}|key-[0-9a-f]{32}",  # SendGrid, Mailgun
            r"hf_[A-Za-z0-9]{30,255}|npm_[A-Za-z0-9]{30,255}|pypi-[A-Za-z0-9_\-]{50,1000}|dckr_pat_[A-Za-z0-9_\-]{20,255}",
            r"LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{28,40}|AKLT[A-Za-z0-9_\-]{16,60}",  # Aliyun, Tencent, Volcengine
            r"dop_v1_[0-9a-f]{40,64}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0[a-z]{3}-[A-Za-z0-9_\-]{22,60}",
            r"(?:gsk|tvly|r8|lin_api|figd|glsa|nvapi|pplx|xai|ntn|secret)[_\-][A-Za-z0-9_\-]{24,255}",
            r"eyJ[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{8,8000}(?:\.[A-Za-z0-9_\-]{0,4000}){0,3}",  # JWT
            r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{30,40}",  # Telegram
        )
    )
    + ")"
    + _RIGHT
)
_PEM: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_NAMED_KEY: Final = re.compile(
    r"(?:\b(?:api|access|secret|auth|bearer|client|app|aws|private|encryption|signing|service|account|license)"
    r"[ _\-]?(?:api[ _\-]?)?(?:key|token|secret)s?\b|\btoken\b|\bsecret\b|\bbearer\b"
    r"|密钥|秘钥|令牌|授权码|\bAppSecret\b"
    r"|\bAccessKey(?:Id|Secret)?\b|\bak\b|\bsk\b|\bkey\b)[^\n.。;；!?！？]{0,24}?[\s:=是为：\"'`]{1,4}"
    r"(?P<value>[A-Za-z0-9_\-+/=.~]{16,512})(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s/:@*]{0,64}:(?P<value>[^\s/@*\[][^\s/@*]{1,127})@", re.IGNORECASE
)

_PART_END: Final = re.compile(r"[_\-.=~]")
_VALUE: Final = r"[\"'`“‘「]?(?P<value>[!-~]{3,512})"
_PASSWORD: Final = re.compile(
    r"(?:(?P<zh>密码|口令|密匙|验证码|动态码|校验码|提取码|解锁码)"
    r"|\b(?:passwords?|passwd|passcodes?|pass ?phrases?|pwd|pass(?=\s?[:=])|pin(?: ?(?:code|number))?|otp"
    r"|verification code|security code|cvv2?|cvc)\b)"
    r"(?:[^\n。！？!?；;,，]{0,40}?(?:(?P<link>\s?[:=：]|是|为|改成|改为|换成|设成|设为|设置为|更新为|叫|用)|(?P<is>\b(?:is|was|to|are|now|as)\b))"
    r"|(?P<none>))\s{0,3}(?:now\s|still\s|just\s)?" + _VALUE,
    re.IGNORECASE,
)
_PASSWORD_WORDS: Final = (
    "密码", "口令", "密匙", "验证码", "动态码", "校验码", "提取码", "解锁码", "pass", "pwd", "pin", "otp",
    "verification code",
    "security code", "cvv", "cvc",
)  # fmt: skip
_STRIPPED: Final = ".,;:?)]}\"'`>，。"
_NO_VALUE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*[(\[].*|\*+|\[[A-Z_]+\]?|<[^>]*>?|\$\{.*|\{\{.*", re.DOTALL)
_SIGN_INSIDE: Final = re.compile(r"[A-Za-z0-9][^A-Za-z0-9'\-,.:/]|[A-Za-z0-9]['\-.:/_][A-Za-z0-9]*[0-9]")


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    if folded.has_long_word:
        yield from _keys(text)
    if "PRIVATE KEY" in text:
        yield from _pem(text)
    if "://" in text:
        for match in _USERINFO.finditer(text):
            yield Finding("PASSWORD", match.start("value"), match.end("value"), 3)
    if folded.says(_PASSWORD_WORDS):
        yield from _passwords(text)


def _keys(text: str) -> Iterator[Finding]:
    for match in _SHAPES.finditer(text):
        yield Finding("API_KEY", match.start(), match.end(), 3)
    for match in _NAMED_KEY.finditer(text):
        value = match["value"].rstrip(".")
        if _is_random(value):
            yield Finding("API_KEY", match.start("value"), match.start("value") + len(value))


def entropy(text: str) -> float:
    """Shannon's entropy of the characters, in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def _is_random(value: str) -> bool:
    """Whether some part of 8 characters or more mixes letters and digits, and the whole has the entropy."""
    mixed = any(len(part) >= 8 and not part.isalpha() and not part.isdecimal() for part in _PART_END.split(value))
    return mixed and entropy(value) >= MIN_ENTROPY


def _pem(text: str) -> Iterator[Finding]:
    """From the first line to the last one, or to the end of the text where that is missing."""
    place = 0
    while (begin := _PEM.search(text, place)) is not None:
        end = _PEM_END.search(text, begin.end())
        place = end.end() if end is not None else len(text)
        yield Finding("PRIVATE_KEY", begin.start(), place, 4)


def _passwords(text: str) -> Iterator[Finding]:
    for match in _PASSWORD.finditer(text):
        value = match["value"].rstrip(_STRIPPED)
        if len(value) < 3 or _NO_VALUE.fullmatch(value):
            continue
        sure = match["zh"] is not None or match["link"] is not None
        if _is_password(value, sure=sure, linked=match["none"] is None):
            yield Finding("PASSWORD", match.start("value"), match.start("value") + len(value))


def _is_password(value: str, *, sure: bool, linked: bool) -> bool:
    """Whether a value that stands where a password would is none of the words that may stand there too."""
    if value.isdecimal():
        return len(value) >= (4 if linked else 6)
    if value.isalpha():
        return (sure and linked and len(value) >= 4) or _has_inner_capitals(value)
    has_digit = any(letter.isdecimal() for letter in value)
    return (has_digit and len(value) >= 4) or _SIGN_INSIDE.search(value) is not None


def _has_inner_capitals(value: str) -> bool:
    """`aBcD`, not `Word` or `WORD`."""
    return len(value) >= 6 and not value[1:].islower() and not value.isupper()
