from typing import Any, cast

import pytest

from memplane.authentication.authenticator import Authenticator
from memplane.authentication.steady_clock import SteadyClock
from memplane.authentication.token_keys import TokenKeys
from memplane.authentication.tokens import TokenVerifier
from memplane.errors import Unauthenticated, Unavailable
from memplane.identity import Identity, Method
from memplane.policy.access import AccessIndex, KnownApiKey, hash_api_key
from memplane.policy.rbac import BOOTSTRAP_ADMIN, Group, Principal, Rbac
from tests.callers import FakeContext
from tests.tokens import NOW_S, Issuer, key_set, settings
from tests.unit.memplane.authentication.test_tokens import GivenKeys

NOW_US = NOW_S * 1_000_000
EC = Issuer()
SPIFFE = "spiffe://bank.example/agents/sales"
ACCESS = AccessIndex(
    Rbac(
        groups={"staff": Group(claims=("staff",))},
        principals={
            "ann": Principal(api_key_sha256=(hash_api_key("mpk_ann"),), token_subjects=("ann",)),
            "sales": Principal(spiffe_ids=(SPIFFE,)),
        },
    ),
    hash_api_key("mpk_admin"),
    [
        KnownApiKey(hash_api_key("mpk_made"), "sales", NOW_US + 1_000_000, "aaaaaaaa"),
        KnownApiKey(hash_api_key("mpk_orphan"), "nobody", None, "bbbbbbbb"),
    ],
)


class Clock:
    def __init__(self) -> None:
        self.time_us = NOW_US
        self.running_s = 50.0

    def now_us(self) -> int:
        return self.time_us


async def tokens() -> TokenVerifier:
    keys = TokenKeys(GivenKeys(key_set(EC)), lambda: 0.0)
    await keys.look()
    return TokenVerifier(settings(), keys)


def authenticator(verifier: TokenVerifier | None = None, clock: Clock | None = None) -> Authenticator:
    used = clock or Clock()
    return Authenticator(SteadyClock(used, lambda: used.running_s), verifier)


def identify(context: FakeContext, verifier: TokenVerifier | None = None, clock: Clock | None = None) -> Identity:
    return authenticator(verifier, clock).identify(cast("Any", context), ACCESS)


def refusal(context: FakeContext, verifier: TokenVerifier | None = None) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as raised:
        identify(context, verifier)
    return raised.value


@pytest.mark.parametrize(
    ("key", "principal_id"), [("mpk_ann", "ann"), ("mpk_made", "sales"), ("mpk_admin", BOOTSTRAP_ADMIN)]
)
def test_an_api_key_of_the_policy_of_an_administrator_or_beside_it_tells_who_calls(key: str, principal_id: str) -> None:
    identity = identify(FakeContext(key))
    assert (identity.principal_id, identity.method) == (principal_id, Method.API_KEY)


async def test_a_token_and_a_certificate_tell_who_calls() -> None:
    verifier = await tokens()
    assert identify(FakeContext(EC.token()), verifier).principal_id == "ann"
    stranger = identify(FakeContext(EC.token({"sub": "zoe", "groups": ["staff"]})), verifier)
    assert (stranger.principal_id, stranger.claims) == ("token:zoe", {"staff"})
    assert identify(FakeContext(uris=[SPIFFE])).method is Method.CERTIFICATE


@pytest.mark.parametrize("bearer", ["mpk_wrong", "mpk_orphan", "a.b.c", "secret", "mpk_" + "x" * 300, "x" * 9_000])
async def test_a_bad_bearer_text_is_never_made_good_by_a_certificate(bearer: str) -> None:
    refusal(FakeContext(bearer, [SPIFFE]), await tokens())


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ([("authorization", "Basic x")], "must be there once"),
        ([("authorization", "Bearer ")], "must be there once"),
        ([("authorization", "Bearer mpk_ann"), ("authorization", "Bearer mpk_ann")], "must be there once"),
        ([("authorization", "")], "must be there once"),
    ],
)
def test_other_credentials_beside_a_certificate_are_refused(metadata: list[tuple[str, str]], told: str) -> None:
    context = FakeContext(uris=[SPIFFE])
    context.metadata = metadata
    assert told in refusal(context).message


@pytest.mark.parametrize(
    ("context", "method", "told"),
    [
        (FakeContext("mpk_wrong"), "api_key", "not known, or was revoked, or has expired"),
        (FakeContext("a.b.c"), "token", "the token is refused: it is no signed JWT"),
        (FakeContext(EC.token({"sub": "zoe"})), "token", "neither the token's subject nor one of its groups"),
        (FakeContext(uris=["spiffe://bank.example/other"]), "certificate", "not in the policy"),
        (FakeContext(uris=[SPIFFE, SPIFFE]), "certificate", "not exactly one URI name"),
        (FakeContext(uris=["https://bank.example"]), "certificate", "not exactly one URI name"),
        (FakeContext(certificate=True), "certificate", "not exactly one URI name"),
    ],
    ids=["key", "garbage", "stranger", "id", "two", "https", "none"],
)
async def test_the_method_that_failed_is_told(context: FakeContext, method: str, told: str) -> None:
    error = refusal(context, await tokens())
    assert told in error.message
    assert error.metadata == {"method": method}


def test_without_any_credentials_it_is_said_what_to_send() -> None:
    error = refusal(FakeContext())
    assert error.message.startswith("no credentials; send")
    assert error.metadata == {}


def test_tokens_are_refused_where_none_are_configured() -> None:
    assert "not taken here" in refusal(FakeContext(EC.token())).message


async def test_keys_that_were_never_read_make_tokens_unavailable_not_wrong() -> None:
    verifier = TokenVerifier(settings(), TokenKeys(GivenKeys(b""), lambda: 0.0))
    with pytest.raises(Unavailable):
        identify(FakeContext(EC.token()), verifier)


def test_a_key_ends_at_its_time_also_when_the_clock_goes_back_a_day() -> None:
    clock = Clock()
    door = authenticator(clock=clock)
    context = cast("Any", FakeContext("mpk_made"))
    assert door.identify(context, ACCESS).principal_id == "sales"
    assert door.problems() == {}
    clock.running_s += 2.0
    clock.time_us -= 86_400 * 1_000_000
    with pytest.raises(Unauthenticated):
        door.identify(context, ACCESS)
    assert "set back by 86402 s" in door.problems()["CLOCK_SET_BACK"]


async def test_a_source_of_keys_that_is_down_is_a_problem() -> None:
    verifier = await tokens()
    assert authenticator(verifier).problems() == {}
    verifier.keys.problem = "no answer in 5 s"
    assert "no answer in 5 s" in authenticator(verifier).problems()["TOKEN_KEYS"]


async def test_a_token_with_a_new_key_waits_for_it_and_other_callers_wait_for_nothing() -> None:
    new, source = Issuer("new"), GivenKeys(key_set(EC))
    verifier = TokenVerifier(settings(), TokenKeys(source, lambda: 100.0))
    await verifier.keys.look()
    source.data = key_set(EC, new)
    door = authenticator(verifier)
    for context in (FakeContext("mpk_ann"), FakeContext(EC.token()), FakeContext()):
        await door.prepare(cast("Any", context))
    assert source.reads == 1
    context = cast("Any", FakeContext(new.token()))
    await door.prepare(context)
    assert door.identify(context, ACCESS).principal_id == "ann"
