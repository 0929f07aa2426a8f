"""Turns domain errors into gRPC statuses: the one place that knows both.

Every status carries ErrorInfo; bad input carries BadRequest; what may work later carries RetryInfo and the trailer
`grpc-retry-pushback-ms` (clients of gRPC honour the trailer, people read the detail). Details stay under 4 KiB: above
8 KiB of trailers gRPC turns any error into RESOURCE_EXHAUSTED.
"""

from collections.abc import Mapping, Sequence

import grpc
from google.protobuf import any_pb2, duration_pb2, message
from google.rpc import error_details_pb2, status_pb2

from memplane.errors import InvalidField, MemPlaneError, Retryable, Violation
from memplane.v1 import error_reason_pb2 as reasons

DOMAIN = "memplane"
MAX_DETAILS_BYTES = 4096
MAX_MESSAGE_CHARS = 500
_MAX_VIOLATIONS = 20
_MAX_DESCRIPTION_CHARS = 160
_PREFIX = "ERROR_REASON_"

CODES: Mapping[int, grpc.StatusCode] = {
    reasons.ERROR_REASON_INVALID_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    reasons.ERROR_REASON_PAGE_TOKEN_MISMATCH: grpc.StatusCode.INVALID_ARGUMENT,
    reasons.ERROR_REASON_POLICY_INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    reasons.ERROR_REASON_UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    reasons.ERROR_REASON_PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    reasons.ERROR_REASON_MEMORY_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    reasons.ERROR_REASON_VERSION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    reasons.ERROR_REASON_REVISION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    reasons.ERROR_REASON_API_KEY_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    reasons.ERROR_REASON_OPERATION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    reasons.ERROR_REASON_STALE_ETAG: grpc.StatusCode.ABORTED,
    reasons.ERROR_REASON_REQUEST_ID_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    reasons.ERROR_REASON_DUPLICATE_CONTENT: grpc.StatusCode.ALREADY_EXISTS,
    reasons.ERROR_REASON_POLICY_NOT_LOADED: grpc.StatusCode.UNAVAILABLE,
    reasons.ERROR_REASON_POLICY_STALE: grpc.StatusCode.UNAVAILABLE,
    reasons.ERROR_REASON_BACKEND_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    reasons.ERROR_REASON_DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    reasons.ERROR_REASON_OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    reasons.ERROR_REASON_POLICY_SHRINKS: grpc.StatusCode.FAILED_PRECONDITION,
    reasons.ERROR_REASON_WRONG_STATE: grpc.StatusCode.FAILED_PRECONDITION,
    reasons.ERROR_REASON_DEFECT: grpc.StatusCode.INTERNAL,
    reasons.ERROR_REASON_NOT_OFFERED: grpc.StatusCode.UNIMPLEMENTED,
    reasons.ERROR_REASON_CANCELLED: grpc.StatusCode.CANCELLED,
}


def reason_name(reason: int) -> str:
    """The reason as ErrorInfo carries it: the enum's name without its prefix."""
    return reasons.ErrorReason.Name(reasons.ErrorReason.ValueType(reason)).removeprefix(_PREFIX)


def code_of(error: MemPlaneError) -> grpc.StatusCode:
    """The gRPC code of an error."""
    return CODES[error.reason]


def status_of(error: MemPlaneError) -> status_pb2.Status:
    """The whole status of an error, details included, at most 4 KiB of them."""
    code: int = code_of(error).value[0]
    text = error.message if len(error.message) <= MAX_MESSAGE_CHARS else error.message[: MAX_MESSAGE_CHARS - 1] + "…"
    status = status_pb2.Status(code=code, message=text)
    for detail in _details(error):
        packed = any_pb2.Any()
        packed.Pack(detail)
        if status.ByteSize() + packed.ByteSize() <= MAX_DETAILS_BYTES:
            status.details.append(packed)
    return status


def trailers_of(error: MemPlaneError, status: status_pb2.Status) -> Sequence[tuple[str, str | bytes]]:
    """The trailing metadata that carries a status, and the pushback for retries."""
    trailers: list[tuple[str, str | bytes]] = [("grpc-status-details-bin", status.SerializeToString())]
    if isinstance(error, Retryable):
        trailers.append(("grpc-retry-pushback-ms", str(int(error.retry_after_s * 1000))))
    return tuple(trailers)


def _details(error: MemPlaneError) -> list[message.Message]:
    info = error_details_pb2.ErrorInfo(reason=reason_name(error.reason), domain=DOMAIN)
    for key, value in error.metadata.items():
        info.metadata[key] = value[:256]
    details: list[message.Message] = [info]
    if isinstance(error, InvalidField):
        details.append(_bad_request(error.violations))
    if isinstance(error, Retryable):
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(error.retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return details


def _bad_request(violations: Sequence[Violation]) -> error_details_pb2.BadRequest:
    shown = [
        error_details_pb2.BadRequest.FieldViolation(
            field=item.field[:100], description=item.description[:_MAX_DESCRIPTION_CHARS]
        )
        for item in violations[:_MAX_VIOLATIONS]
    ]
    bad = error_details_pb2.BadRequest()
    for violation in shown:
        if bad.ByteSize() + violation.ByteSize() > MAX_DETAILS_BYTES - 1024:
            break
        bad.field_violations.append(violation)
    return bad
