"""What a failed call raises: reason, fields at fault and when to try again, decoded from `google.rpc.Status`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from memplane.errors import Violation
from memplane.rpc.errors import DOMAIN
from memplane.rpc.tls_errors import tls_problem

M = TypeVar("M", bound=Message)
REFUSED = re.compile(
    r"^(?:failed to connect to all addresses|connections to all backends failing).*?ipv[46]:(\S+): ", re.DOTALL
)


class RpcError(Exception):
    """A call that failed.

    Attributes:
        code: gRPC status code.
        message: What the server says, fit for a person.
        reason: Name of the ErrorReason without its prefix; empty when the failure did not come from MemPlane.
        violations: Fields at fault, when the request is to blame.
        retry_after_s: Seconds after which to try again; None when the server did not say.
        facts: The ids and limits involved.
    """

    def __init__(self, code: grpc.StatusCode, message: str, details: "Details | None" = None) -> None:
        found = details or Details()
        self.code, self.message = code, message
        self.reason, self.violations = found.reason, found.violations
        self.retry_after_s, self.facts = found.retry_after_s, found.facts
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """The failure in one line."""
        fields = "; ".join(f"{violation.field}: {violation.description}" for violation in self.violations)
        name = self.reason or self.code.name
        notes = [fields] if fields and fields not in self.message else []
        notes += [value for fact, value in self.facts if fact == "correlation_id"]
        return f"{name}: {self.message}" + (f" ({'; '.join(notes)})" if notes else "")


class InvalidRequest(RpcError):
    """The request is wrong; `violations` names the fields."""


class NotPermitted(RpcError):
    """No credentials, unknown ones, or no grant."""


class NotFound(RpcError):
    """No such memory, version or revision."""


class Conflicting(RpcError):
    """A stale etag, a request_id used with another payload, or content that is already there."""


class Unavailable(RpcError):
    """Nobody answered in time, or a backend that the answer needs is down; try again after `retry_after_s`."""


KINDS: dict[grpc.StatusCode, type[RpcError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.UNAUTHENTICATED: NotPermitted,
    grpc.StatusCode.PERMISSION_DENIED: NotPermitted,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ABORTED: Conflicting,
    grpc.StatusCode.ALREADY_EXISTS: Conflicting,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unavailable,
}
CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True)
class Details:
    """What the details of a `google.rpc.Status` say."""

    reason: str = ""
    violations: tuple[Violation, ...] = ()
    retry_after_s: float | None = None
    facts: tuple[tuple[str, str], ...] = ()


def from_call(error: grpc.aio.AioRpcError) -> RpcError:
    """The error of a failed call, with whatever details it carries."""
    status = _status_of(error)
    kind = KINDS.get(error.code(), RpcError)
    return kind(error.code(), _message_of(error), read_details(status) if status else None)


def from_status(status: status_pb2.Status) -> RpcError:
    """The error that a status inside a response stands for, as in `BatchWriteResult.error`."""
    code = CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    return KINDS.get(code, RpcError)(code, status.message, read_details(status))


def read_details(status: status_pb2.Status) -> Details:
    """Takes the known details out of a status; unknown ones are passed over."""
    reason, facts = "", ()
    for info in _unpacked(status, error_details_pb2.ErrorInfo):
        if info.domain == DOMAIN:
            reason, facts = info.reason, tuple(sorted(info.metadata.items()))
    violations = tuple(
        Violation(found.field, found.description)
        for bad in _unpacked(status, error_details_pb2.BadRequest)
        for found in bad.field_violations
    )
    delays = [retry.retry_delay.ToTimedelta() for retry in _unpacked(status, error_details_pb2.RetryInfo)]
    return Details(reason, violations, delays[0].total_seconds() if delays else None, facts)


def _message_of(error: grpc.aio.AioRpcError) -> str:
    """What the server says; where nobody listens, that and the address instead of gRPC's own words."""
    details = error.details() or "no details"
    refused = REFUSED.search(details)
    if not refused:
        return details
    problem = tls_problem(details)
    return f"no connection to {refused.group(1)}: {problem}" if problem else f"nobody answers at {refused.group(1)}"


def _status_of(error: grpc.aio.AioRpcError) -> status_pb2.Status | None:
    """None when the trailers hold no status, or one that does not belong to this error."""
    try:
        return rpc_status.from_call(error)  # type: ignore[arg-type]  # it reads code, details and trailers only
    except (ValueError, DecodeError):
        return None


def _unpacked(status: status_pb2.Status, kind: type[M]) -> Iterator[M]:
    for detail in status.details:
        message = kind()
        if detail.Unpack(message):
            yield message
