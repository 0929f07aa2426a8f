"""PolicyAdminService, the part about API keys: made, listed and revoked.

Rules:
1. A key is shown in the answer of the call that made it, and nowhere else: its hash alone is kept. A retry of that call
   gets its id and not the key.
2. A key is for a principal of the `rbac` section in force, never for the bootstrap administrator, and has that
   principal's rights, whatever they become. Whoever may make keys has `policy.reload`, and could give anybody any right
   by a reload: a key gives nothing that he could not take, and the history tells who made it.
3. Making and revoking are generations of their own, which data planes hear of as of any other.
"""

import secrets
from collections.abc import Callable
from typing import Any, Final

import grpc

from controlplane.admin_part import AdminPart
from controlplane.convert import revision_message
from controlplane.fleet import Fleet, Target
from controlplane.key_changes import KeyChanges, KeyCommand, api_key_message
from controlplane.page_tokens import page_size, page_token, position_of
from controlplane.requests import MAX_COMMENT_BYTES, MAX_REQUEST_ID_BYTES, check_bytes, payload_sha256, wait_s_of
from controlplane.revisions import ApiKeyRecord, KeyEnd, KeyIdTaken, RevisionStore
from controlplane.snapshots import InForce, Snapshots
from controlplane.standing import Clock
from memplane.errors import ApiKeyNotFound, InvalidField, PageTokenMismatch, PolicyNotLoaded
from memplane.policy.access import API_KEY_BYTES, hash_api_key, key_id_of, new_api_key
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2

MAX_DESCRIPTION_BYTES: Final = 256
MAX_EXPIRE_S: Final = 253_402_300_799
"""The last second of the year 9999."""
_ATTEMPTS: Final = 5
"""An id is 32 random bits; with 10,000 keys one in 400,000 is taken."""
_QUERY: Final = "ListApiKeys"

_Context = grpc.aio.ServicerContext[Any, Any]


class KeysAdmin(AdminPart):
    """Makes, lists and revokes API keys."""

    _keys: KeyChanges
    _store: RevisionStore
    _snapshots: Snapshots
    _fleet: Fleet
    _clock: Clock

    async def CreateApiKey(  # noqa: N802 - named by the contract
        self, request: admin_pb2.CreateApiKeyRequest, context: _Context
    ) -> admin_pb2.CreateApiKeyResponse:
        """Makes a key, and shows it this once."""

        def authorise() -> str:
            author = self._require(context, "policy.reload")
            self._check_principal(request.principal)
            return author

        author = authorise()
        check_bytes("description", request.description, MAX_DESCRIPTION_BYTES)
        check_bytes("request_id", request.request_id, MAX_REQUEST_ID_BYTES)
        expire_time_us = _expire_time_us(request, self._clock.now_us())
        for _ in range(_ATTEMPTS):
            secret = new_api_key(secrets.token_bytes(API_KEY_BYTES))
            record = ApiKeyRecord(
                key_id=key_id_of(secret),
                sha256=hash_api_key(secret),
                principal=request.principal,
                create_time_us=self._clock.now_us(),
                expire_time_us=expire_time_us,
                description=request.description,
                author=author,
            )
            try:
                outcome = await self._keys.change(_creation(request, record), authorise)
            except KeyIdTaken:
                continue
            response = admin_pb2.CreateApiKeyResponse.FromString(outcome.answer)
            response.secret = "" if outcome.is_repeated else secret
            return response
        raise AssertionError(f"{_ATTEMPTS} random key ids were taken")

    async def ListApiKeys(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ListApiKeysRequest, context: _Context
    ) -> admin_pb2.ListApiKeysResponse:
        """One page, newest first."""
        self._require(context, "policy.read")
        size = page_size(request.page_size, 100)
        is_asked = _asked(request, self._clock.now_us())
        found = [key for key in await self._store.api_keys() if is_asked(key)][: size + 1]
        response = admin_pb2.ListApiKeysResponse(api_keys=[api_key_message(key) for key in found[:size]])
        if len(found) > size:
            response.next_page_token = page_token(_query(request), _position(found[size - 1]))
        return response

    async def RevokeApiKey(  # noqa: N802 - named by the contract
        self, request: admin_pb2.RevokeApiKeyRequest, context: _Context
    ) -> admin_pb2.RevokeApiKeyResponse:
        """Makes a key worthless, and waits for data planes when asked to."""
        author = self._require(context, "policy.reload")
        wait_s = wait_s_of(request)
        check_bytes("comment", request.comment, MAX_COMMENT_BYTES)
        known = await self._known(request.key_id)
        told = f"API key {known.key_id} of {known.principal} revoked" + (": " if request.comment else "")
        command = KeyCommand(
            author=author,
            respond=lambda in_force: revision_message(in_force.revision).SerializeToString(),
            comment=told + request.comment,
            ended_key=KeyEnd(known.key_id, self._clock.now_us()),
        )
        expected = self._fleet.connected_ids()
        outcome = await self._keys.change(command, lambda: self._require(context, "policy.reload"))
        revision = policy_pb2.PolicyRevision.FromString(outcome.answer)
        target = Target(revision.version_info, revision.generation)
        return admin_pb2.RevokeApiKeyResponse(
            api_key=api_key_message(await self._known(request.key_id)),
            revision=revision,
            propagation=await self._spread(target, expected, wait_s),
        )

    async def _spread(self, target: Target, expected: frozenset[str], wait_s: float) -> policy_pb2.PropagationSummary:
        if wait_s > 0 and expected:
            return await self._fleet.wait_for_acks(target, expected, wait_s)
        return self._fleet.propagation(target, expected)

    async def _known(self, key_id: str) -> ApiKeyRecord:
        if not key_id:
            raise InvalidField.one("key_id", "required: the 8 hex digits after mpk_")
        for key in await self._store.api_keys():
            if key.key_id == key_id:
                return key
        raise ApiKeyNotFound(key_id[:64])

    def _check_principal(self, principal: str) -> None:
        current = self._snapshots.current
        if not principal:
            raise InvalidField.one("principal", "required: the id of a principal of the rbac section")
        if current is None or current.compiled.policy is None:
            raise PolicyNotLoaded
        rbac = current.compiled.policy.rbac
        if rbac is None or principal not in rbac.principals:
            raise InvalidField.one("principal", "not in the rbac section in force; add it there first, and reload")


def _creation(request: admin_pb2.CreateApiKeyRequest, record: ApiKeyRecord) -> KeyCommand:
    def respond(in_force: InForce) -> bytes:
        return admin_pb2.CreateApiKeyResponse(
            api_key=api_key_message(record), revision=revision_message(in_force.revision)
        ).SerializeToString()

    return KeyCommand(
        author=record.author,
        respond=respond,
        comment=f"API key {record.key_id} made for {record.principal}",
        new_key=record,
        request_id=request.request_id,
        payload_sha256=payload_sha256(request, "request_id"),
    )


def _expire_time_us(request: admin_pb2.CreateApiKeyRequest, now_us: int) -> int | None:
    if not request.HasField("expire_time"):
        return None
    given = request.expire_time
    if not (0 <= given.seconds <= MAX_EXPIRE_S and 0 <= given.nanos < 1_000_000_000):
        raise InvalidField.one("expire_time", "no valid time, up to the year 9999")
    if given.ToMicroseconds() <= now_us:
        raise InvalidField.one("expire_time", "has passed already; leave it out for a key that does not end")
    return given.ToMicroseconds()


def _asked(request: admin_pb2.ListApiKeysRequest, now_us: int) -> Callable[[ApiKeyRecord], bool]:
    """Whether a key belongs on the page, or on one after it."""
    after = _after(request)

    def is_asked(key: ApiKeyRecord) -> bool:
        is_on = after is None or (key.create_time_us, key.key_id) < after
        return is_on and request.principal in ("", key.principal) and (request.include_ended or key.holds(now_us))

    return is_asked


def _after(request: admin_pb2.ListApiKeysRequest) -> tuple[int, str] | None:
    position = position_of(_query(request), request.page_token)
    if position is None:
        return None
    time_us, _, key_id = position.partition("/")
    if not time_us.isascii() or not time_us.isdecimal() or len(time_us) > 18:
        raise PageTokenMismatch
    return int(time_us), key_id


def _query(request: admin_pb2.ListApiKeysRequest) -> str:
    return f"{_QUERY} {request.include_ended} {request.principal}"


def _position(key: ApiKeyRecord) -> str:
    return f"{key.create_time_us}/{key.key_id}"
