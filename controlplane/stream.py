"""PolicyDiscoveryService: brings the policy in force to data planes and hears what became of it."""

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from controlplane.fleet import Fleet, Node, Target
from controlplane.snapshots import Snapshots
from controlplane.standing import Clock
from memplane.errors import InvalidField, PolicyNotLoaded, Unauthenticated
from memplane.policy.access import hash_api_key
from memplane.rpc.credentials import bearer_key
from memplane.rpc.lifetime import RENEW
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_discovery_service_pb2_grpc import PolicyDiscoveryServiceServicer

log = logging.getLogger("memplane.controlplane.stream")

MAX_NODE_ID_BYTES = 128
MAX_NODE_BYTES = 16 * 1024
MAX_DETAIL_BYTES = 1024
FIRST_MESSAGE_S = 15.0
"""How long a stream may stay without its first message. Unmeasured."""

_Context = grpc.aio.ServicerContext[Any, Any]
_Messages = AsyncIterator[discovery_pb2.StreamPoliciesRequest]


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """`node_key_sha256` None: no data plane is let in. `heartbeat_s` is the time between two heartbeats.

    `max_age_s` is when connections are renewed (0: never): streams end before, in good order.
    """

    node_key_sha256: str | None
    heartbeat_s: float
    max_age_s: float = 0.0

    def age_s(self, jitter: float) -> float:
        """How long one stream lasts; `jitter` in [0, 1) spreads data planes. gRPC ends connections from 0.9 on."""
        return (0.7 + 0.2 * jitter) * self.max_age_s if self.max_age_s else float("inf")


class PolicyDiscoveryServicer(PolicyDiscoveryServiceServicer):
    """Serves data planes, which show the node key."""

    def __init__(self, snapshots: Snapshots, fleet: Fleet, clock: Clock, options: StreamOptions):
        self._snapshots = snapshots
        self._fleet = fleet
        self._clock = clock
        self._options = options
        self._closing = False
        self._jitter = secrets.SystemRandom()

    def close(self) -> None:
        """Ends every stream, also those that come later."""
        self._closing = True
        self._fleet.wake_all()

    async def FetchPolicies(  # noqa: N802 - named by the contract
        self, request: discovery_pb2.FetchPoliciesRequest, context: _Context
    ) -> discovery_pb2.FetchPoliciesResponse:
        """The snapshot in force. Raises PolicyNotLoaded before the first."""
        self._authenticate(context)
        _check_node(request.node)
        if self._snapshots.current is None:
            raise PolicyNotLoaded
        return discovery_pb2.FetchPoliciesResponse(snapshot=self._snapshots.current.signed)

    async def StreamPolicies(  # noqa: N802 - named by the contract
        self, request_iterator: _Messages, context: _Context
    ) -> AsyncIterator[discovery_pb2.StreamPoliciesResponse]:
        """Snapshots and heartbeats, until the data plane goes, a newer stream of it comes, it is old, or we stop."""
        self._authenticate(context)
        first = await _first_message(request_iterator)
        serves = Target(first.version_info, first.generation)
        number = self._fleet.connect(first.node, serves, self._clock.now_us())
        self._note_report(first.node.node_id, first)
        session = _Session(self._fleet, first.node.node_id, number)
        reader = asyncio.create_task(self._listen(request_iterator, session))
        reader.add_done_callback(lambda _: session.node.wake.set())
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + self._options.age_s(self._jitter.random())
        try:
            while not self._closing and session.is_newest() and not reader.done() and now_s() < until_s:
                yield session.next_response(self._snapshots, self._options.heartbeat_s)
                await session.wait(min(self._options.heartbeat_s, max(0.0, until_s - now_s())))
            if reader.done():
                reader.result()
            elif now_s() >= until_s:
                context.set_trailing_metadata(RENEW)
        finally:
            self._fleet.disconnect(session.node_id, number, self._clock.now_us())
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader

    async def _listen(self, messages: _Messages, session: "_Session") -> None:
        async for message in messages:
            if not session.is_newest():
                return
            _check_report(message)
            self._note_report(session.node_id, message)
            session.take_answer(message, self._clock.now_us())

    def _note_report(self, node_id: str, message: discovery_pb2.StreamPoliciesRequest) -> None:
        report = message.report if message.HasField("report") else None
        self._fleet.heard(node_id, report, self._clock.now_us())

    def _authenticate(self, context: _Context) -> None:
        expected = self._options.node_key_sha256
        given = hash_api_key(bearer_key(context))
        if expected is None or not hmac.compare_digest(given, expected):
            raise Unauthenticated


class _Session:
    """One open stream: which answer is waited for, and for what."""

    def __init__(self, fleet: Fleet, node_id: str, number: int):
        self._fleet = fleet
        self._number = number
        self._count = 0
        self._asked: tuple[str, Target] | None = None
        self.node_id = node_id
        self.node: Node = fleet.node(node_id)

    def is_newest(self) -> bool:
        return self._fleet.owns(self.node_id, self._number)

    def next_response(self, snapshots: Snapshots, heartbeat_s: float) -> discovery_pb2.StreamPoliciesResponse:
        """The snapshot in force where the node should have it, else a heartbeat."""
        self._count += 1
        target = snapshots.target
        response = discovery_pb2.StreamPoliciesResponse(
            version_info=target.version, generation=target.generation, nonce=f"{self._number}-{self._count}"
        )
        if snapshots.current is not None and self.node.wants(target):
            response.snapshot.CopyFrom(snapshots.current.signed)
            self._asked = (response.nonce, target)
            self._fleet.sent(self.node_id, target)
        else:
            response.heartbeat.interval_ms = int(heartbeat_s * 1000)
        return response

    async def wait(self, heartbeat_s: float) -> None:
        """Until there may be something to send, or the next heartbeat is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(heartbeat_s):
                await self.node.wake.wait()
        self.node.wake.clear()

    def take_answer(self, message: discovery_pb2.StreamPoliciesRequest, now_us: int) -> None:
        """An answer to the newest snapshot counts; answers to older ones, and words without a nonce, are reports."""
        serves = Target(message.version_info, message.generation)
        if self._asked is None or message.response_nonce != self._asked[0]:
            if serves.generation:
                self._fleet.tells(self.node_id, serves, now_us)
            return
        target, self._asked = self._asked[1], None
        if message.error_detail:
            detail = message.error_detail.encode()[:MAX_DETAIL_BYTES].decode(errors="ignore")
            self._fleet.nacked(self.node_id, target, detail)
            log.warning("data plane %r refused generation %d: %s", self.node_id, target.generation, detail)
        elif message.version_info in ("", target.version):
            self._fleet.acked(self.node_id, target, now_us)
        else:
            self._fleet.tells(self.node_id, serves, now_us)


async def _first_message(messages: _Messages) -> discovery_pb2.StreamPoliciesRequest:
    try:
        async with asyncio.timeout(FIRST_MESSAGE_S):
            first = await anext(messages, None)
    except TimeoutError as error:
        raise InvalidField.one("node", f"required in a first message within {FIRST_MESSAGE_S:.0f} s") from error
    if first is None:
        raise InvalidField.one("node", "required in the first message")
    _check_node(first.node)
    _check_report(first)
    return first


def _check_node(node: policy_pb2.NodeInfo) -> None:
    size = len(node.node_id.encode())
    if not 1 <= size <= MAX_NODE_ID_BYTES or not node.node_id.isprintable():
        raise InvalidField.one("node.node_id", f"required: 1 to {MAX_NODE_ID_BYTES} bytes of printable characters")
    if node.ByteSize() > MAX_NODE_BYTES:
        raise InvalidField.one("node", f"at most {MAX_NODE_BYTES} bytes")


def _check_report(message: discovery_pb2.StreamPoliciesRequest) -> None:
    if message.report.ByteSize() > MAX_NODE_BYTES:
        raise InvalidField.one("report", f"at most {MAX_NODE_BYTES} bytes")
