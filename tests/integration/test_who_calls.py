"""Each way of being recognised, on a data plane over gRPC: keys, tokens and certificates, several at once."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from memplane.authentication.key_sources import KeyFile
from memplane.authentication.token_keys import TokenKeys
from memplane.authentication.tokens import TokenVerifier
from memplane.policy.access import hash_api_key
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.certificates import Authority
from tests.deadline import eventually
from tests.integration.harness import Plane, as_user, running_plane
from tests.tokens import NOW_S, Issuer, key_set, settings

SPIFFE = "spiffe://bank.example/agents/hr"
SALES_KEY = "mpk_00000001_sales-agent-of-the-tests"
READ: Mapping[str, Any] = {"permissions": ["memory.read"]}
POLICY: Mapping[str, Any] = {
    "rbac": {
        "groups": {"legal": {"claims": ["legal"], "grants": [{"namespace": "dept.legal", **READ}]}},
        "principals": {
            "sales": {
                "api_key_sha256": [hash_api_key(SALES_KEY)],
                "token_subjects": ["sales@bank.example"],
                "grants": [{"namespace": "dept.sales", **READ}],
            },
            "hr": {"spiffe_ids": [SPIFFE], "grants": [{"namespace": "dept.hr", **READ}]},
        },
    }
}
OLD, NEW = Issuer("old"), Issuer("new")


@asynccontextmanager
async def plane_with_tokens(
    path: Path, policy: Mapping[str, Any] = POLICY, **parts: Any
) -> AsyncIterator[tuple[Plane, TokenKeys]]:
    keys = TokenKeys(KeyFile(path), time.monotonic)
    await keys.look()
    async with running_plane(policy=policy, tokens=TokenVerifier(settings(), keys), **parts) as plane:
        assert plane.clock.now_us() == NOW_S * 1_000_000
        yield plane, keys


@pytest.fixture
def jwks(tmp_path: Path) -> Path:
    path = tmp_path / "jwks.json"
    path.write_bytes(key_set(OLD))
    return path


async def list_in(stub: Any, namespace: str, bearer: str | None) -> grpc.StatusCode:
    metadata = as_user(bearer) if bearer is not None else ()
    try:
        await stub.ListMemories(pb.ListMemoriesRequest(namespace=namespace), metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_keys_and_tokens_open_their_own_namespace_and_no_other(jwks: Path) -> None:
    async with plane_with_tokens(jwks) as (plane, _):
        sales = OLD.token({"sub": "sales@bank.example"})
        legal = OLD.token({"sub": "zoe", "groups": ["legal"]})
        for bearer, own in ((SALES_KEY, "dept.sales"), (sales, "dept.sales"), (legal, "dept.legal")):
            assert await list_in(plane.stub, own, bearer) is grpc.StatusCode.OK
            for other in {"dept.sales", "dept.hr", "dept.legal", "dept.salesforce", "dept"} - {own}:
                assert await list_in(plane.stub, other, bearer) is grpc.StatusCode.PERMISSION_DENIED
        for bearer in (None, "mpk_wrong", "secret", OLD.token({"exp": NOW_S - 60}), NEW.token()):
            assert await list_in(plane.stub, "dept.sales", bearer) is grpc.StatusCode.UNAUTHENTICATED


async def test_a_refusal_tells_the_method_and_nothing_of_the_credential(jwks: Path) -> None:
    async with plane_with_tokens(jwks) as (plane, _):
        token = OLD.token({"sub": "sales@bank.example", "exp": NOW_S - 60})
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await plane.stub.ListMemories(pb.ListMemoriesRequest(namespace="dept.sales"), metadata=as_user(token))
        assert raised.value.details() == "the token is refused: it has expired"
        status: Any = rpc_status.from_call(raised.value)  # type: ignore[arg-type]  # the stubs want a sync call's error
        info = error_details_pb2.ErrorInfo()
        status.details[0].Unpack(info)
        assert (info.reason, dict(info.metadata)) == ("UNAUTHENTICATED", {"method": "token"})
        assert "sales@" not in str(status)


async def test_keys_of_tokens_are_changed_under_load_without_a_failed_call(jwks: Path) -> None:
    async with plane_with_tokens(jwks) as (plane, keys):
        current = [OLD]
        codes: list[grpc.StatusCode] = []

        async def caller() -> None:
            for number in range(25):
                bearer = current[0].token({"sub": "sales@bank.example", "jti": str(number)})
                codes.append(await list_in(plane.stub, "dept.sales", bearer))

        callers = [asyncio.create_task(caller()) for _ in range(3)]
        await eventually(lambda: len(codes), lambda count: count >= 20, within_s=60)
        await asyncio.to_thread(replace, jwks, key_set(OLD, NEW))
        current[0] = NEW
        await eventually(lambda: len(codes), lambda count: count >= 40, within_s=60)
        await asyncio.gather(*callers)
        assert codes == [grpc.StatusCode.OK] * 75
        await asyncio.to_thread(replace, jwks, key_set(NEW))
        await keys.look()
        assert await list_in(plane.stub, "dept.sales", OLD.token()) is grpc.StatusCode.UNAUTHENTICATED
        await asyncio.to_thread(jwks.unlink)
        await keys.look()
        good = NEW.token({"sub": "sales@bank.example"})
        assert await list_in(plane.stub, "dept.sales", good) is grpc.StatusCode.OK


def replace(path: Path, data: bytes) -> None:
    draft = path.with_suffix(".new")
    draft.write_bytes(data)
    draft.replace(path)


async def test_certificates_keys_and_tokens_are_taken_side_by_side_and_a_bad_key_is_not_made_good(jwks: Path) -> None:
    authority = Authority()
    server_pair, agent, stranger = authority.sign(), authority.agent(SPIFFE), authority.agent(SPIFFE + "-2")
    credentials = grpc.ssl_server_credentials([(server_pair.key, server_pair.certificate)], authority.pem, True)
    async with plane_with_tokens(jwks, credentials=credentials) as (plane, _):

        async def seen(pair: Any, namespace: str, bearer: str | None) -> grpc.StatusCode:
            shown = grpc.ssl_channel_credentials(authority.pem, pair.key, pair.certificate)
            async with grpc.aio.secure_channel(f"127.0.0.1:{plane.tls_port}", shown) as channel:
                return await list_in(MemoryServiceStub(channel), namespace, bearer)

        assert await seen(agent, "dept.hr", None) is grpc.StatusCode.OK
        assert await seen(agent, "dept.sales", None) is grpc.StatusCode.PERMISSION_DENIED
        assert await seen(agent, "dept.sales", SALES_KEY) is grpc.StatusCode.OK
        assert await seen(agent, "dept.hr", SALES_KEY) is grpc.StatusCode.PERMISSION_DENIED
        assert await seen(agent, "dept.hr", "mpk_wrong") is grpc.StatusCode.UNAUTHENTICATED
        assert await seen(agent, "dept.legal", OLD.token({"groups": ["legal"]})) is grpc.StatusCode.OK
        assert await seen(stranger, "dept.hr", None) is grpc.StatusCode.UNAUTHENTICATED
        assert await seen(authority.sign("plain", ()), "dept.hr", None) is grpc.StatusCode.UNAUTHENTICATED


async def test_limits_hold_for_one_principal_and_change_with_the_policy_and_never_for_health(jwks: Path) -> None:
    limited = json.loads(json.dumps(POLICY))
    limited["rbac"]["principals"]["sales"]["limits"] = {"calls_per_s": 0.001, "burst": 3}
    async with plane_with_tokens(jwks, limited) as (plane, _):
        codes = [await list_in(plane.stub, "dept.sales", SALES_KEY) for _ in range(5)]
        assert codes == [grpc.StatusCode.OK] * 3 + [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
        token = OLD.token({"sub": "sales@bank.example"})
        assert await list_in(plane.stub, "dept.sales", token) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await list_in(plane.stub, "dept.sales", None) is grpc.StatusCode.UNAUTHENTICATED
        assert await list_in(plane.stub, "dept.legal", OLD.token({"groups": ["legal"]})) is grpc.StatusCode.OK
        async with grpc.aio.insecure_channel(plane.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for _ in range(20):
                await health.Check(health_pb2.HealthCheckRequest())
        plane.use(POLICY, generation=2)
        assert await list_in(plane.stub, "dept.sales", SALES_KEY) is grpc.StatusCode.OK
