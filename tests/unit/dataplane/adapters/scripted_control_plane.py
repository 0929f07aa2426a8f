"""A control plane that says what a test tells it to, on a real port, and keeps what it hears."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memplane.policy.codec import to_json
from memplane.policy.model import PolicySet
from memplane.policy.retrieve import RetrievePolicy
from memplane.policy.snapshot import sign
from memplane.rpc.lifetime import RENEW
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_discovery_service_pb2_grpc import (
    PolicyDiscoveryServiceServicer,
    add_PolicyDiscoveryServiceServicer_to_server,
)

END = discovery_pb2.StreamPoliciesResponse(nonce="end")
RENEWAL = discovery_pb2.StreamPoliciesResponse(nonce="renewal")


def signed_snapshot(key: Ed25519PrivateKey, generation: int, top_k: int = 6) -> policy_pb2.SignedPolicySnapshot:
    policy = PolicySet(retrieve_policy=RetrievePolicy(top_k=top_k))
    return sign(
        policy_pb2.PolicySnapshot(version_info=f"sha256:{top_k}", generation=generation, policy_json=to_json(policy)),
        key,
    )


@dataclass
class ScriptedControlPlane(PolicyDiscoveryServiceServicer):
    """Sends what is put into `outgoing`; END ends the stream, RENEWAL has it opened again at once."""

    address: str = ""
    streams: int = 0
    refuses_key: bool = False
    heard: list[discovery_pb2.StreamPoliciesRequest] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    outgoing: asyncio.Queue[discovery_pb2.StreamPoliciesResponse] = field(default_factory=asyncio.Queue)

    async def StreamPolicies(  # noqa: N802 - named by the contract
        self, request_iterator: Any, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[discovery_pb2.StreamPoliciesResponse]:
        self.streams += 1
        self.metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        if self.refuses_key:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid API key")
        reader = asyncio.create_task(self._listen(request_iterator))
        try:
            while (response := await self.outgoing.get()) not in (END, RENEWAL):
                yield response
            if response is RENEWAL:
                context.set_trailing_metadata(RENEW)
        finally:
            reader.cancel()

    async def FetchPolicies(  # noqa: N802 - named by the contract
        self, request: Any, context: Any
    ) -> discovery_pb2.FetchPoliciesResponse:
        raise NotImplementedError

    async def _listen(self, requests: Any) -> None:
        async for request in requests:
            self.heard.append(request)

    def push(self, nonce: str, signed: policy_pb2.SignedPolicySnapshot) -> None:
        self.outgoing.put_nowait(discovery_pb2.StreamPoliciesResponse(nonce=nonce, snapshot=signed))

    def beat(self, version: str = "", generation: int = 0, interval_ms: int = 5000) -> None:
        self.outgoing.put_nowait(
            discovery_pb2.StreamPoliciesResponse(
                version_info=version,
                generation=generation,
                nonce="beat",
                heartbeat=discovery_pb2.Heartbeat(interval_ms=interval_ms),
            )
        )

    def answer_to(self, nonce: str) -> discovery_pb2.StreamPoliciesRequest | None:
        return next((message for message in self.heard if message.response_nonce == nonce), None)


@asynccontextmanager
async def scripted_control_plane() -> AsyncIterator[ScriptedControlPlane]:
    plane = ScriptedControlPlane()
    server = grpc.aio.server()
    add_PolicyDiscoveryServiceServicer_to_server(plane, server)
    plane.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield plane
    finally:
        await server.stop(0)
