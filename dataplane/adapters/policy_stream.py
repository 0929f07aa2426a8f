"""Takes policy from the control plane: verify, keep a copy, swap, ACK; or refuse whole, NACK, and keep the old one.

A lost control plane never stops the data plane: it goes on serving what it has, and connects again with jitter.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from dataplane.adapters.age_file import AgeFile, AgeNotes
from dataplane.adapters.control_channel import ControlChannel, ControlTls
from dataplane.adapters.last_good import CorruptLastGood, LastGoodFile
from dataplane.adapters.trusted_keys import NoTrustedKey, read_trusted_keys
from dataplane.ending import end
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from dataplane.ports import Clock
from memplane.errors import PolicyAbsence
from memplane.policy.codec import InvalidPolicy
from memplane.policy.snapshot import PolicySnapshot, UntrustedSnapshot, open_signed
from memplane.rpc.certificates import BadCertificate
from memplane.rpc.lifetime import RENEW
from memplane.rpc.tls_errors import tls_problem
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_discovery_service_pb2_grpc import PolicyDiscoveryServiceStub

log = logging.getLogger("memplane.dataplane.policy")

MAX_DETAIL_BYTES = 1024
"""Longest reason of a NACK."""

_HEARTBEATS_UNTIL_LOST = 3
_LEAST_PAUSE_S = 0.05
_PARTING_S = 1.0
"""How long the control plane may take to end its half of a stream. Unmeasured."""
_RENEWAL_S = 0.5
"""A stream that is renewed is opened again within this long. Unmeasured."""
_Call = grpc.aio.StreamStreamCall[discovery_pb2.StreamPoliciesRequest, discovery_pb2.StreamPoliciesResponse]


class StreamLost(Exception):
    """The control plane ended the stream or fell silent."""


class RefusedGeneration(Exception):
    """A snapshot would take this data plane back in time, or is another one of the same generation."""


_EXPECTED = (UntrustedSnapshot, InvalidPolicy, RefusedGeneration, NoTrustedKey, CorruptLastGood, OSError)


@dataclass(frozen=True, slots=True)
class PolicyStreamOptions:
    """Whom to ask, as whom, and how patiently.

    `trusted_key_file` holds the control plane's public keys (PEM); `tls` None: they talk in clear. A failed attempt is
    followed by a random wait of up to `backoff_min_s` doubled at each failure, at most `backoff_max_s`; a lost stream,
    and each attempt after one, by one of up to `reconnect_spread_s` at least, so that a restarted control plane is not
    met by every data plane at once.
    `silence_s`: without a word for so long the control plane counts as lost. Unmeasured, but for the spread: 300 data
    planes came back over 5.5 s after a restart that took 2 s (2026-11).
    """

    control_address: str
    node_key: str = field(repr=False)
    node: policy_pb2.NodeInfo
    trusted_key_file: Path
    last_good_file: Path
    bootstrap_admin_sha256: str | None = None
    tls: ControlTls | None = None
    backoff_min_s: float = 0.5
    backoff_max_s: float = 10.0
    reconnect_spread_s: float = 8.0
    silence_s: float = 15.0


class PolicyStream:
    """Keeps `holder` current. `report` tells how the data plane is doing; it is called at every heartbeat."""

    def __init__(
        self,
        holder: PolicyHolder,
        options: PolicyStreamOptions,
        report: Callable[[], policy_pb2.NodeReport],
        clock: Clock,
    ):
        self._holder = holder
        self._options = options
        self._report = report
        self._clock = clock
        self._channel = ControlChannel(options.control_address, options.tls)
        self._last_good = LastGoodFile(options.last_good_file)
        self._age = AgeNotes(holder, AgeFile.beside(options.last_good_file), clock)
        self._jitter = secrets.SystemRandom()
        self._task: asyncio.Task[None] | None = None
        self._last_failure = ""
        self._unsaved: policy_pb2.SignedPolicySnapshot | None = None
        self._refused: PolicyAbsence | None = None
        self.failure_count = 0

    async def start(self) -> None:
        """Loads the last good policy, if there is one to trust, and starts to connect."""
        await self._load_last_good()
        self._task = asyncio.create_task(self._run(), name="policy-stream")

    async def stop(self) -> None:
        """Closes the stream; the policy stays in force."""
        if self._task is not None:
            await end(self._task)
            self._task = None

    async def _load_last_good(self) -> None:
        try:
            signed = await asyncio.to_thread(self._last_good.read)
            if signed is None:
                return
            snapshot = await asyncio.to_thread(self._open, signed)
            age_s = await self._age.at_start(snapshot)
        except Exception as error:  # noqa: BLE001 - a bad copy must not keep the data plane from starting
            self._note_problem(f"the last good policy is ignored: {_words(error)}", error)
        else:
            log.info("serving from the last good policy, generation %d, %.0f s old", snapshot.generation, age_s)
            self._holder.swap(snapshot, PolicyOrigin.LAST_GOOD, self._clock.now_us(), age_s)
            await self._age.note()

    async def _run(self) -> None:
        failures_in_a_row = 0
        while True:
            renews = False
            try:
                renews = await self._connect()
            except Exception as error:  # noqa: BLE001 - the loop must live on: counted, logged, tried again
                self._note_failure(error)
            await self._age.note_now_and_then()
            failures_in_a_row = 0 if self._holder.control_plane_connected else failures_in_a_row + 1
            self._holder.control_plane_connected = renews
            jitter, was_open = self._jitter.random(), self._holder.heard_time_us > 0
            pause = pause_s(self._options, failures_in_a_row, jitter, was_open=was_open)
            await asyncio.sleep(jitter * _RENEWAL_S if renews else pause)

    def _note_failure(self, error: Exception) -> None:
        """A stream that was open and is lost is opened again at once as a rule: what is worth a warning is the next."""
        self.failure_count += 1
        self._holder.absence = _absence_of(error, PolicyAbsence.NO_CONTROL_PLANE)
        if isinstance(error, NoTrustedKey):
            self._holder.problem = _words(error)
        reason = f"no policy stream from {self._options.control_address}: {_words(error)}"
        if self._holder.control_plane_connected:
            log.info("the policy stream is opened again: %s", _words(error))
            return
        if reason != self._last_failure:
            log.warning("%s", reason)
        self._last_failure = reason

    async def _connect(self) -> bool:
        """Follows the control plane until the stream ends; whether it is to be opened again at once."""
        await asyncio.to_thread(read_trusted_keys, self._options.trusted_key_file)
        async with self._channel.open() as channel:
            stub = PolicyDiscoveryServiceStub(channel)
            call = stub.StreamPolicies(metadata=(("authorization", f"Bearer {self._options.node_key}"),))
            try:
                if await self._converse(call):
                    await self._part(call)
                    return True
                return any(pair in RENEW for pair in await call.trailing_metadata() or ())
            finally:
                call.cancel()

    async def _part(self, call: _Call) -> None:
        """Ends a stream that was made with certificates of before, in good order."""
        log.info("the policy stream is opened again with new certificates")
        with suppress(TimeoutError, grpc.aio.AioRpcError):
            async with asyncio.timeout(_PARTING_S):
                await call.done_writing()
                while await call.read() is not grpc.aio.EOF:
                    pass

    async def _converse(self, call: _Call) -> bool:
        """Until the control plane ends the stream (False), or it is to be ended for new certificates (True)."""
        silence_s = self._options.silence_s
        answer = self._message()
        answer.node.CopyFrom(self._options.node)
        while (response := await self._exchange(call, answer, silence_s)) is not None:
            self._holder.control_plane_connected, self._last_failure = True, ""
            self._holder.heard_time_us = self._clock.now_us()
            if response.HasField("snapshot"):
                answer = await self._answer_snapshot(response)
            else:
                self._holder.confirm(response.version_info, response.generation)
                self._note_absence(response.generation)
                await self._age.note_now_and_then()
                if self._unsaved is not None:
                    await self._save(self._unsaved)
                silence_s = min(self._options.silence_s, _HEARTBEATS_UNTIL_LOST * response.heartbeat.interval_ms / 1000)
                answer = self._message()
                if self._channel.is_outdated:
                    return True
        return False

    async def _exchange(
        self, call: _Call, message: discovery_pb2.StreamPoliciesRequest, silence_s: float
    ) -> discovery_pb2.StreamPoliciesResponse | None:
        """The next response; None when the control plane has ended the stream in good order after others."""
        try:
            async with asyncio.timeout(silence_s):
                await call.write(message)
                response = await call.read()
        except TimeoutError as error:
            raise StreamLost(f"silent for {silence_s:.1f} s") from error
        if isinstance(response, discovery_pb2.StreamPoliciesResponse):
            return response
        if self._holder.control_plane_connected:
            return None
        raise StreamLost("the control plane ended the stream")

    async def _answer_snapshot(
        self, response: discovery_pb2.StreamPoliciesResponse
    ) -> discovery_pb2.StreamPoliciesRequest:
        refusal = await self._accept(response.snapshot)
        answer = self._message()
        answer.response_nonce = response.nonce
        if refusal:
            answer.error_detail = refusal.encode()[:MAX_DETAIL_BYTES].decode(errors="ignore")
        return answer

    async def _accept(self, signed: policy_pb2.SignedPolicySnapshot) -> str:
        """Puts the snapshot in force, or tells why not."""
        try:
            snapshot = await asyncio.to_thread(self._open, signed)
            self._refuse_older(snapshot)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it is a NACK, and the old one stays
            self._note_problem(f"a policy was refused: {_words(error)}", error)
            self._refused = self._holder.absence = _absence_of(error, PolicyAbsence.REFUSED)
            return _words(error)
        self._holder.swap(snapshot, PolicyOrigin.CONTROL_PLANE, self._clock.now_us())
        log.info("policy generation %d is in force", snapshot.generation)
        await self._save(signed)
        await self._age.note()
        return ""

    async def _save(self, signed: policy_pb2.SignedPolicySnapshot) -> None:
        """Keeps the copy for the next start. A full disk keeps no policy from being in force: tried at heartbeats."""
        try:
            await asyncio.to_thread(self._last_good.write, signed)
        except OSError as error:
            self._holder.problem = f"the policy is in force, but no copy of it could be stored: {error}"
            if self._unsaved is None:
                log.warning("%s", self._holder.problem)
            self._unsaved = signed
        else:
            if self._unsaved is not None:
                self._holder.problem = ""
            self._unsaved = None

    def _note_absence(self, generation_in_force: int) -> None:
        """A heartbeat came instead of a policy: there is none, or what there is was refused before."""
        if generation_in_force == 0:
            self._refused = None
        fallback = PolicyAbsence.NOT_FETCHED if generation_in_force else PolicyAbsence.NONE_IN_FORCE
        self._holder.absence = self._refused or fallback

    def _note_problem(self, problem: str, error: Exception) -> None:
        self._holder.problem = problem
        log.error("%s", problem, exc_info=None if isinstance(error, _EXPECTED) else error)

    def _open(self, signed: policy_pb2.SignedPolicySnapshot) -> PolicySnapshot:
        trusted = read_trusted_keys(self._options.trusted_key_file)
        return open_signed(signed, trusted, bootstrap_admin_sha256=self._options.bootstrap_admin_sha256)

    def _refuse_older(self, snapshot: PolicySnapshot) -> None:
        current = self._holder.current
        if current is None:
            return
        if snapshot.generation < current.generation:
            raise RefusedGeneration(
                f"generation {snapshot.generation} is older than {current.generation}, in force here"
            )
        if snapshot.generation == current.generation and snapshot.version != current.version:
            raise RefusedGeneration(f"generation {snapshot.generation} is in force here with another content")

    def _message(self) -> discovery_pb2.StreamPoliciesRequest:
        message = discovery_pb2.StreamPoliciesRequest(report=self._report())
        if self._holder.current is not None:
            message.version_info = self._holder.current.version
            message.generation = self._holder.current.generation
        return message


def pause_s(options: PolicyStreamOptions, failures_in_a_row: int, jitter: float, *, was_open: bool) -> float:
    """How long to wait before the next attempt; 0 failures: a stream that was open has ended. `jitter` is in [0, 1).

    Once a stream `was_open`, further attempts stay as spread as the first: those that fail while a control plane starts
    would all come back in the second after, with their short waits.
    """
    if failures_in_a_row == 0:
        return jitter * options.reconnect_spread_s
    ceiling_s = min(options.backoff_max_s, options.backoff_min_s * 2.0 ** min(failures_in_a_row, 16))
    spread_s = options.reconnect_spread_s if was_open else 0.0
    return max(_LEAST_PAUSE_S, jitter * max(ceiling_s, spread_s))


def _absence_of(error: Exception, otherwise: PolicyAbsence) -> PolicyAbsence:
    if isinstance(error, UntrustedSnapshot):
        return PolicyAbsence.UNTRUSTED
    if isinstance(error, NoTrustedKey):
        return PolicyAbsence.NO_TRUSTED_KEY
    return PolicyAbsence.NODE_KEY_REFUSED if _is_key_refused(error) else otherwise


def _is_key_refused(error: Exception) -> bool:
    return isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNAUTHENTICATED


def _words(error: Exception) -> str:
    if _is_key_refused(error):
        return f"{PolicyAbsence.NODE_KEY_REFUSED.value}; give the key whose hash the control plane was started with"
    if isinstance(error, UntrustedSnapshot):
        return f"{type(error).__name__}: {error}; --trusted-key must be the control plane's signing_key.pub"
    if isinstance(error, grpc.aio.AioRpcError):
        details = str(error.details())
        return f"{error.code().name}: {tls_problem(details) or details}"
    return str(error) if isinstance(error, BadCertificate) else f"{type(error).__name__}: {error}"
