import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from memplane.authentication.token_keys import TokenKeys
from memplane.authentication.tokens import (
    CACHED_TOKENS,
    MAX_GROUPS,
    MAX_TOKEN_CHARS,
    KeysUnknown,
    TokenRefused,
    TokenVerifier,
)
from tests.tokens import AUDIENCE, ISSUER, NOW_S, Issuer, key_set, settings

NOW_US = NOW_S * 1_000_000
EC = Issuer()
OTHER_EC = Issuer("key-2")
RSA = Issuer("rsa-1", "RS256")


class GivenKeys:
    """A source with whatever bytes it was given last; None: it fails."""

    poll_s = 1.0

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads = 0

    async def read(self) -> bytes | None:
        self.reads += 1
        return self.data


async def verifier(*issuers: Issuer, **fields: Any) -> TokenVerifier:
    keys = TokenKeys(GivenKeys(key_set(*issuers)), lambda: 0.0)
    await keys.look()
    return TokenVerifier(settings(**fields), keys)


def part(value: Mapping[str, Any] | bytes) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW_S + 60}


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_a_good_token_tells_who_calls(algorithm: str) -> None:
    issuer = Issuer("k", algorithm)
    tokens = await verifier(issuer, algorithms=(algorithm,))
    claims = tokens.verify(issuer.token({"groups": ["sales", "staff"]}), NOW_US)
    assert (claims.subject, claims.groups) == ("ann", {"sales", "staff"})
    assert claims.expire_time_us == (NOW_S + 3600) * 1_000_000


@pytest.mark.parametrize(
    ("claims", "refusal"),
    [
        ({"exp": NOW_S - 31}, "it has expired"),
        ({"exp": NOW_S - 30}, "it has expired"),
        ({"nbf": NOW_S + 31}, "it is not valid yet"),
        ({"iat": NOW_S + 31}, "it is not valid yet"),
        ({"exp": None}, "it has no claim exp"),
        ({"iss": None}, "it has no claim iss"),
        ({"aud": None}, "it has no claim aud"),
        ({"sub": None}, "it has no claim sub"),
        ({"aud": "another"}, "it is for another audience"),
        ({"aud": [AUDIENCE + "x", "y"]}, "it is for another audience"),
        ({"iss": ISSUER + "/"}, "it is of another issuer"),
        ({"sub": ""}, "its claim sub is no text of 1 to 256"),
        ({"sub": 7}, "its claim sub is no text of 1 to 256"),
        ({"sub": "x" * 257}, "its claim sub is no text of 1 to 256"),
        ({"exp": "soon"}, "its claim exp is no time"),
        ({"exp": True}, "its claim exp is no time"),
        ({"exp": float("nan")}, "its claim exp is no time"),
        ({"exp": 1e300}, "its claim exp is no time"),
        ({"nbf": []}, "its claim nbf is no time"),
        ({"groups": {"a": 1}}, "its claim groups is no list of texts"),
        ({"groups": ["a", 1]}, "its claim groups is no list of texts"),
        ({"groups": ["a"] * (MAX_GROUPS + 1)}, f"its claim groups has more than {MAX_GROUPS} items"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_token_with_wrong_claims_is_refused_and_told_why(claims: dict[str, Any], refusal: str) -> None:
    tokens = await verifier(EC)
    with pytest.raises(TokenRefused, match=f"^{refusal}$"):
        tokens.verify(EC.token(claims), NOW_US)


@pytest.mark.parametrize(
    "claims", [{"exp": NOW_S - 29}, {"nbf": NOW_S + 30}, {"aud": ["x", AUDIENCE]}, {"groups": "g"}]
)
async def test_clocks_may_differ_by_the_leeway_and_lists_may_be_one_text(claims: dict[str, Any]) -> None:
    assert (await verifier(EC)).verify(EC.token(claims), NOW_US).subject == "ann"


async def test_a_token_that_was_good_once_is_refused_when_its_time_is_over() -> None:
    tokens, token = await verifier(EC), EC.token({"exp": NOW_S + 60})
    for _ in range(2):
        assert tokens.verify(token, NOW_US).subject == "ann"
    with pytest.raises(TokenRefused, match=r"expired"):
        tokens.verify(token, NOW_US + 91_000_000)


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, 7])
@pytest.mark.parametrize("signature", ["", "AAAA"])
async def test_an_unsigned_token_is_refused(alg: object, signature: str) -> None:
    tokens = await verifier(EC)
    with pytest.raises(TokenRefused, match=r"algorithm is not taken|no signed JWT"):
        tokens.verify(f"{part({'alg': alg, 'kid': EC.kid})}.{part(CLAIMS)}.{signature}", NOW_US)


async def test_a_public_key_is_never_taken_for_a_shared_secret() -> None:
    public = RSA.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256', 'kid': RSA.kid})}.{part(CLAIMS)}"
    forged = f"{signed}.{part(hmac.new(public, signed.encode(), hashlib.sha256).digest())}"
    tokens = await verifier(RSA, algorithms=("RS256",))
    with pytest.raises(TokenRefused, match=r"^its algorithm is not taken here$"):
        tokens.verify(forged, NOW_US)


async def test_a_key_verifies_algorithms_of_its_own_type_alone() -> None:
    tokens = await verifier(EC, RSA, algorithms=("ES256", "RS256"))
    token = RSA.token(headers={"kid": EC.kid})
    with pytest.raises(TokenRefused, match=r"key that is not known"):
        tokens.verify(token, NOW_US)
    assert tokens.verify(RSA.token(), NOW_US).subject == "ann"
    pinned = await verifier(EC, RSA, algorithms=("ES256",))
    with pytest.raises(TokenRefused, match=r"algorithm is not taken"):
        pinned.verify(RSA.token(), NOW_US)


@pytest.mark.parametrize("headers", [{"crit": ["exp"], "exp": NOW_S}, {"crit": []}, {"b64": True}, {"b64": False}])
async def test_a_header_that_must_be_understood_is_refused(headers: dict[str, Any]) -> None:
    tokens = await verifier(EC)
    header = {"alg": "ES256", "kid": EC.kid, **headers}
    with pytest.raises(TokenRefused, match=r"not understood|no signed JWT"):
        tokens.verify(f"{part(header)}.{part(CLAIMS)}.{part(b'x' * 64)}", NOW_US)


async def test_a_changed_token_or_one_signed_by_another_is_refused() -> None:
    tokens = await verifier(EC)
    head, _, signature = EC.token().split(".")
    for forged in (f"{head}.{part({**CLAIMS, 'sub': 'ben'})}.{signature}", OTHER_EC.token(headers={"kid": EC.kid})):
        with pytest.raises(TokenRefused, match=r"^its signature is not of this token$"):
            tokens.verify(forged, NOW_US)


async def test_a_token_without_a_key_name_takes_the_only_key_there_is() -> None:
    token = EC.token(headers={"kid": None})
    assert (await verifier(EC)).verify(token, NOW_US).subject == "ann"
    assert (await verifier(EC, RSA)).verify(token, NOW_US).subject == "ann"
    with pytest.raises(TokenRefused, match=r"^it names no key"):
        (await verifier(EC, OTHER_EC)).verify(token, NOW_US)


@pytest.mark.parametrize(
    "token",
    ["", "a", "a.b", "a.b.c", "a.b.c.d", "..", "é.b.c", "\ud800.a.b", part({"alg": "ES256"}) + "..", "." * 100],
    ids=repr,
)
async def test_garbage_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        (await verifier(EC)).verify(token, NOW_US)


@pytest.mark.parametrize("kid", [[], {}, 7, True])
async def test_a_key_name_that_is_no_text_is_refused(kid: object) -> None:
    tokens = await verifier(EC)
    token = f"{part({'alg': 'ES256', 'kid': kid})}.{part(CLAIMS)}.{part(b'x' * 64)}"
    await tokens.prepare(token)
    with pytest.raises(TokenRefused):
        tokens.verify(token, NOW_US)


async def test_an_oversized_token_is_refused_unread() -> None:
    tokens = await verifier(EC)
    await tokens.prepare("x" * (MAX_TOKEN_CHARS + 1))
    with pytest.raises(TokenRefused, match=r"more than"):
        tokens.verify("x" * (MAX_TOKEN_CHARS + 1), NOW_US)


async def test_a_deeply_nested_token_is_refused() -> None:
    nested = part(b'{"alg":' + b"[" * 2_000 + b"]" * 2_000 + b"}")
    with pytest.raises(TokenRefused):
        (await verifier(EC)).verify(f"{nested}.{part(CLAIMS)}.AAAA", NOW_US)


async def test_before_any_key_was_read_tokens_are_neither_good_nor_bad() -> None:
    keys = TokenKeys(GivenKeys(b"not yet"), lambda: 0.0)
    await keys.look()
    with pytest.raises(KeysUnknown):
        TokenVerifier(settings(), keys).verify(EC.token(), NOW_US)


async def test_a_key_that_is_gone_verifies_nothing_any_more_also_no_token_seen_before() -> None:
    source = GivenKeys(key_set(EC, OTHER_EC))
    keys = TokenKeys(source, lambda: 0.0)
    await keys.look()
    tokens, token = TokenVerifier(settings(), keys), EC.token()
    assert tokens.verify(token, NOW_US).subject == "ann"
    source.data = key_set(OTHER_EC)
    await keys.look()
    with pytest.raises(TokenRefused, match=r"key that is not known"):
        tokens.verify(token, NOW_US)


async def test_remembered_tokens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CACHED_TOKENS == 10_000
    monkeypatch.setattr("memplane.authentication.tokens.CACHED_TOKENS", 3)
    tokens = await verifier(EC)
    for number in range(10):
        tokens.verify(EC.token({"jti": str(number)}), NOW_US)
    assert len(tokens._checked) == 3


async def test_other_claims_may_tell_who_calls() -> None:
    tokens = await verifier(EC, principal_claim="azp", groups_claim="roles")
    claims = tokens.verify(EC.token({"azp": "agent-7", "roles": ["r"], "groups": ["g"], "sub": None}), NOW_US)
    assert (claims.subject, claims.groups) == ("agent-7", {"r"})
