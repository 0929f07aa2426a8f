from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from controlplane.documents import Document
from controlplane.reload import Command
from memplane.policy.access import hash_api_key
from memplane.policy.snapshot import open_signed
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1.policy_admin_service_pb2 import CreateApiKeyRequest, ListApiKeysRequest, RevokeApiKeyRequest
from tests.deadline import eventually_async
from tests.unit.controlplane.parts import FixtureClock, policy
from tests.unit.controlplane.serving import ADMIN, Serving, serving

RBAC = b"""
rbac:
  limits: {calls_per_s: 0.001, burst: 40}
  principals:
    reader:
      grants: [{namespace: "*", permissions: [policy.read]}]
    watcher:
      limits: {concurrency: 1}
      grants: [{namespace: "*", permissions: [policy.read]}]
    sales:
      grants: [{namespace: dept.sales, permissions: [memory.read]}]
"""


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as running:
        await running.reloader.reload(Command([Document("rbac.yaml", RBAC)], "test"))
        yield running


def bearing(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


async def create(plane: Serving, principal: str = "reader", **fields: Any) -> admin_pb2.CreateApiKeyResponse:
    return await plane.admin.CreateApiKey(CreateApiKeyRequest(principal=principal, **fields), metadata=ADMIN)


async def revoke(plane: Serving, key_id: str, **fields: Any) -> admin_pb2.RevokeApiKeyResponse:
    return await plane.admin.RevokeApiKey(RevokeApiKeyRequest(key_id=key_id, **fields), metadata=ADMIN)


async def listed(plane: Serving, **fields: Any) -> list[str]:
    answer = await plane.admin.ListApiKeys(ListApiKeysRequest(**fields), metadata=ADMIN)
    return [key.key_id for key in answer.api_keys]


async def code_of(call: Any) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def read_with(plane: Serving, key: str) -> grpc.StatusCode:
    return await code_of(plane.admin.ListApiKeys(ListApiKeysRequest(), metadata=bearing(key)))


def clock_of(plane: Serving) -> FixtureClock:
    clock = plane.parts.clock
    assert isinstance(clock, FixtureClock)
    return clock


async def test_a_new_key_lets_its_principal_in_until_it_is_revoked(plane: Serving) -> None:
    made = await create(plane, description="of the tests")
    assert made.secret.startswith(f"mpk_{made.api_key.key_id}_")
    assert (made.api_key.principal, made.api_key.author) == ("reader", "bootstrap-admin")
    assert (made.revision.generation, made.revision.origin) == (2, "api_key")
    assert await read_with(plane, made.secret) is grpc.StatusCode.OK
    ended = await revoke(plane, made.api_key.key_id, comment="lost")
    assert ended.api_key.HasField("revoke_time")
    assert (ended.revision.generation, ended.revision.comment.endswith("revoked: lost")) == (3, True)
    assert await read_with(plane, made.secret) is grpc.StatusCode.UNAUTHENTICATED


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_data_planes_get_the_hash_and_nobody_the_key(plane: Serving, tmp_path: Path) -> None:
    made = await create(plane, "sales")
    current = plane.parts.snapshots.current
    assert current is not None
    assert made.secret.encode() not in current.signed.payload
    trusted = {current.signed.key_id: plane.parts.builder._key.public_key()}
    access = open_signed(current.signed, trusted, None).access
    identity = access.by_api_key(made.secret, clock_of(plane).now_us())
    assert identity is not None
    assert identity.principal_id == "sales"
    kept = [*(await plane.parts.store.api_keys())]
    assert [key.sha256 for key in kept] == [hash_api_key(made.secret)]
    assert made.secret.encode() not in everything_in(tmp_path)


async def test_a_retry_gets_the_id_and_never_a_second_key(plane: Serving) -> None:
    first = await create(plane, request_id="r1")
    again = await create(plane, request_id="r1")
    assert (again.api_key, again.secret) == (first.api_key, "")
    assert await listed(plane) == [first.api_key.key_id]
    other = create(plane, "sales", request_id="r1")
    assert await code_of(other) is grpc.StatusCode.ALREADY_EXISTS
    assert (await create(plane, request_id="r2")).secret


async def test_a_key_ends_at_its_time_to_the_microsecond(plane: Serving) -> None:
    clock = clock_of(plane)
    request = CreateApiKeyRequest(principal="reader")
    request.expire_time.FromMicroseconds(clock.now_us() + 60_000_000)
    made = await plane.admin.CreateApiKey(request, metadata=ADMIN)
    clock.value_us += 59_999_999
    assert await listed(plane) == [made.api_key.key_id]
    clock.value_us += 1
    assert await read_with(plane, made.secret) is grpc.StatusCode.UNAUTHENTICATED
    assert await listed(plane) == []
    assert await listed(plane, include_ended=True) == [made.api_key.key_id]


@pytest.mark.parametrize(
    "request_",
    [
        CreateApiKeyRequest(),
        CreateApiKeyRequest(principal="nobody"),
        CreateApiKeyRequest(principal="bootstrap-admin"),
        CreateApiKeyRequest(principal="token:ann"),
        CreateApiKeyRequest(principal="reader", description="x" * 257),
        CreateApiKeyRequest(principal="reader", request_id="x" * 129),
        CreateApiKeyRequest(principal="reader", expire_time={"seconds": 1}),
        CreateApiKeyRequest(principal="reader", expire_time={"seconds": 2**62}),
        CreateApiKeyRequest(principal="reader", expire_time={"seconds": 2_000_000_000, "nanos": -1}),
    ],
    ids=["none", "unknown", "administrator", "token", "description", "request", "past", "far", "nanos"],
)
async def test_a_bad_request_makes_no_key(plane: Serving, request_: CreateApiKeyRequest) -> None:
    assert await code_of(plane.admin.CreateApiKey(request_, metadata=ADMIN)) is grpc.StatusCode.INVALID_ARGUMENT
    assert await listed(plane, include_ended=True) == []


async def test_who_may_only_read_policy_makes_and_revokes_nothing(plane: Serving) -> None:
    made = await create(plane)
    asked = bearing(made.secret)
    for call in (
        plane.admin.CreateApiKey(CreateApiKeyRequest(principal="reader"), metadata=asked),
        plane.admin.RevokeApiKey(RevokeApiKeyRequest(key_id=made.api_key.key_id), metadata=asked),
    ):
        assert await code_of(call) is grpc.StatusCode.PERMISSION_DENIED
    assert await read_with(plane, made.secret) is grpc.StatusCode.OK


async def test_revoking_twice_changes_nothing_and_an_unknown_id_is_not_found(plane: Serving) -> None:
    made = await create(plane)
    first = await revoke(plane, made.api_key.key_id)
    clock_of(plane).value_us += 1_000_000
    again = await revoke(plane, made.api_key.key_id)
    assert (again.api_key, again.revision.generation) == (first.api_key, first.revision.generation)
    assert await code_of(revoke(plane, "00000000")) is grpc.StatusCode.NOT_FOUND
    assert await code_of(revoke(plane, "")) is grpc.StatusCode.INVALID_ARGUMENT


async def test_pages_have_every_key_once_newest_first(plane: Serving) -> None:
    made = []
    for number in range(5):
        clock_of(plane).value_us += number % 2
        made.append((await create(plane, "sales" if number == 2 else "reader")).api_key)
    expected = [key.key_id for key in sorted(made, key=lambda key: (key.create_time.nanos, key.key_id), reverse=True)]
    found, token = [], ""
    while True:
        request = ListApiKeysRequest(page_size=2, page_token=token)
        answer = await plane.admin.ListApiKeys(request, metadata=ADMIN)
        found += [key.key_id for key in answer.api_keys]
        token = answer.next_page_token
        if not token:
            break
        other = ListApiKeysRequest(page_size=2, page_token=token, principal="sales")
        assert await code_of(plane.admin.ListApiKeys(other, metadata=ADMIN)) is grpc.StatusCode.INVALID_ARGUMENT
    assert found == expected
    assert await listed(plane, principal="sales") == [made[2].key_id]


async def test_a_reload_or_a_principal_that_goes_and_comes_back_leaves_keys_as_they_are(plane: Serving) -> None:
    kept, ended = await create(plane), await create(plane)
    await revoke(plane, ended.api_key.key_id)
    await plane.reloader.reload(Command(policy(5), "test", allow_shrink=True))
    assert await read_with(plane, kept.secret) is grpc.StatusCode.UNAUTHENTICATED
    await plane.reloader.reload(Command([Document("rbac.yaml", RBAC)], "test"))
    assert await read_with(plane, kept.secret) is grpc.StatusCode.OK
    assert await read_with(plane, ended.secret) is grpc.StatusCode.UNAUTHENTICATED


async def to_its_end(stream: Any) -> None:
    while await stream.read() is not grpc.aio.EOF:
        pass


async def test_a_watch_ends_when_its_key_is_revoked(plane: Serving) -> None:
    made = await create(plane)
    watch = plane.admin.WatchDataPlaneStatuses(admin_pb2.WatchDataPlaneStatusesRequest(), metadata=bearing(made.secret))
    await watch.read()
    await revoke(plane, made.api_key.key_id)
    assert await code_of(to_its_end(watch)) is grpc.StatusCode.UNAUTHENTICATED


async def test_an_open_watch_counts_as_a_call_under_way(plane: Serving) -> None:
    made = await create(plane, "watcher")
    watch = plane.admin.WatchDataPlaneStatuses(admin_pb2.WatchDataPlaneStatusesRequest(), metadata=bearing(made.secret))
    await watch.read()
    assert await read_with(plane, made.secret) is grpc.StatusCode.RESOURCE_EXHAUSTED
    watch.cancel()
    await eventually_async(lambda: read_with(plane, made.secret), lambda code: code is grpc.StatusCode.OK)


async def test_a_principal_over_its_limits_is_refused_and_the_administrator_is_not(plane: Serving) -> None:
    made = await create(plane)
    codes = [await read_with(plane, made.secret) for _ in range(42)]
    assert codes.count(grpc.StatusCode.OK) == 40
    assert codes[-1] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await listed(plane) == [made.api_key.key_id]
