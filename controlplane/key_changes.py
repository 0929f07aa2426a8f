"""Changes of API keys: each is a new generation with the documents in force, so that data planes hear of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from controlplane.revisions import Answer, ApiKeyRecord, Change, KeyEnd
from controlplane.snapshots import InForce, content_version
from controlplane.standing import Parts, Standing
from memplane.errors import PolicyNotLoaded, RequestIdReused
from memplane.v1 import policy_pb2

ORIGIN = "api_key"


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """A key made or ended, as asked for.

    `respond` makes the answer that is given and kept for retries: never with the secret. With a `request_id` the answer
    is kept for 24 hours; `payload_sha256` tells retries from misuse.
    """

    author: str
    respond: Callable[[InForce], bytes]
    comment: str = ""
    new_key: ApiKeyRecord | None = None
    ended_key: KeyEnd | None = None
    request_id: str = ""
    payload_sha256: str = ""


@dataclass(frozen=True, slots=True)
class KeyOutcome:
    """The answer. `is_repeated`: an earlier call with this request_id has done it, this one did nothing."""

    answer: bytes
    is_repeated: bool = False


class KeyChanges:
    """Makes and ends API keys, one at a time with everything else that changes the policy in force."""

    def __init__(self, parts: Parts, standing: Standing):
        self._parts = parts
        self._standing = standing

    async def change(self, command: KeyCommand, authorise: Callable[[], object]) -> KeyOutcome:
        """Carries a command out; a caller that goes away does not stop it half way.

        `authorise` is called when the command's turn comes, with the newest policy in force; what it raises ends it.
        A key that has ended, or never was, is not ended again: no new generation.

        Raises:
            KeyIdTaken, RequestIdReused, PolicyNotLoaded: Nothing was changed.
        """
        return await self._standing.in_turn(lambda: self._attempt(command, authorise))

    async def _attempt(self, command: KeyCommand, authorise: Callable[[], object]) -> KeyOutcome:
        authorise()
        earlier = await self._earlier_answer(command)
        if earlier is not None:
            return KeyOutcome(earlier, is_repeated=True)
        current = self._parts.snapshots.current
        if current is None or self._standing.problem:
            raise PolicyNotLoaded
        held = {key.key_id for key in self._standing.api_keys}
        if command.new_key is None and (command.ended_key is None or command.ended_key.key_id not in held):
            return KeyOutcome(command.respond(current))
        in_force = await asyncio.to_thread(self._next, current, command)
        answer = command.respond(in_force)
        kept = self._kept_answer(command, answer)
        change = Change(in_force.revision, kept, new_key=command.new_key, ended_key=command.ended_key)
        await self._standing.take(change, in_force)
        return KeyOutcome(answer)

    def _next(self, current: InForce, command: KeyCommand) -> InForce:
        ended = command.ended_key.key_id if command.ended_key is not None else None
        keys = tuple(key for key in current.api_keys if key.key_id != ended)
        keys = (command.new_key, *keys) if command.new_key is not None else keys
        now_us = self._parts.clock.now_us()
        revision = replace(
            current.revision,
            generation=current.revision.generation + 1,
            version=content_version(current.compiled.version, keys, now_us),
            create_time_us=now_us,
            author=command.author,
            comment=command.comment,
            origin=ORIGIN,
        )
        return self._parts.builder.build(revision, current.compiled, keys)

    def _kept_answer(self, command: KeyCommand, answer: bytes) -> Answer | None:
        if not command.request_id:
            return None
        return Answer(command.author, command.request_id, command.payload_sha256, self._parts.clock.now_us(), answer)

    async def _earlier_answer(self, command: KeyCommand) -> bytes | None:
        if not command.request_id:
            return None
        found = await self._parts.store.answer(command.author, command.request_id, self._parts.clock.now_us())
        if found is not None and found.payload_sha256 != command.payload_sha256:
            raise RequestIdReused(command.request_id)
        return None if found is None else found.answer


def api_key_message(key: ApiKeyRecord) -> policy_pb2.ApiKey:
    """A key as administrators see it."""
    message = policy_pb2.ApiKey(
        key_id=key.key_id, principal=key.principal, description=key.description, author=key.author
    )
    message.create_time.FromMicroseconds(key.create_time_us)
    if key.expire_time_us is not None:
        message.expire_time.FromMicroseconds(key.expire_time_us)
    if key.revoke_time_us is not None:
        message.revoke_time.FromMicroseconds(key.revoke_time_us)
    return message
