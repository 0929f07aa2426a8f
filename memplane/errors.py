"""Errors that a client may see: each carries its ErrorReason and the facts, and no driver's words.

`memplane.rpc.errors` alone turns them into gRPC statuses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from memplane.identity import Method
from memplane.v1 import error_reason_pb2 as reasons


@dataclass(frozen=True, slots=True)
class Violation:
    """A field that is wrong, by its path in the request, and what would be right."""

    field: str
    description: str


class MemPlaneError(Exception):
    """What every error has: a reason of the contract, a message for people, and facts for programs (`metadata`)."""

    reason: ClassVar[int] = reasons.ERROR_REASON_DEFECT

    def __init__(self, message: str, **metadata: str | int):
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}


class InvalidField(MemPlaneError):
    """One or more fields of the request are missing or wrong."""

    reason = reasons.ERROR_REASON_INVALID_FIELD

    def __init__(self, violations: Sequence[Violation]):
        super().__init__("; ".join(f"{item.field}: {item.description}" for item in violations[:5]))
        self.violations = tuple(violations)

    @classmethod
    def one(cls, field: str, description: str) -> "InvalidField":
        """The error for a single field."""
        return cls([Violation(field, description)])


class PageTokenMismatch(InvalidField):
    """The page token was not made by this query."""

    reason = reasons.ERROR_REASON_PAGE_TOKEN_MISMATCH

    def __init__(self) -> None:
        super().__init__([Violation("page_token", "not a token of this query; leave it empty for the first page")])


class Unauthenticated(MemPlaneError):
    """No credentials, or refused ones; `method` is that by which nobody was recognised."""

    reason = reasons.ERROR_REASON_UNAUTHENTICATED

    def __init__(
        self,
        refusal: str = "no valid key; send metadata 'authorization: Bearer KEY'",
        method: Method | None = None,
    ):
        super().__init__(refusal, **({"method": method.value} if method is not None else {}))


class PermissionDenied(MemPlaneError):
    """The principal lacks a permission, whether or not the thing exists."""

    reason = reasons.ERROR_REASON_PERMISSION_DENIED

    def __init__(self, permission: str, namespace: str | None = None):
        where = f" on namespace {namespace!r}" if namespace else ""
        super().__init__(f"permission {permission} is not granted{where}", permission=permission)


class MemoryNotFound(MemPlaneError):
    """No such memory in this namespace."""

    reason = reasons.ERROR_REASON_MEMORY_NOT_FOUND

    def __init__(self, memory_id: str, namespace: str):
        super().__init__(f"no memory {memory_id!r} in namespace {namespace!r}", id=memory_id, namespace=namespace)


class VersionNotFound(MemPlaneError):
    """The memory has no such version."""

    reason = reasons.ERROR_REASON_VERSION_NOT_FOUND

    def __init__(self, memory_id: str, version: int):
        super().__init__(f"memory {memory_id!r} has no version {version}", id=memory_id, version=version)


class StaleEtag(MemPlaneError):
    """The etag names something older than what is there."""

    reason = reasons.ERROR_REASON_STALE_ETAG

    def __init__(self, given: str, current: str):
        super().__init__(f"etag {given!r} is stale; read again and retry", current_etag=current)


class RequestIdReused(MemPlaneError):
    """The request_id was used with another payload."""

    reason = reasons.ERROR_REASON_REQUEST_ID_REUSED

    def __init__(self, request_id: str):
        super().__init__(f"request_id {request_id!r} was used with another payload", request_id=request_id)


class DuplicateContentExists(MemPlaneError):
    """An update would make two ACTIVE memories say the same, or state the same fact."""

    reason = reasons.ERROR_REASON_DUPLICATE_CONTENT

    def __init__(self, memory_id: str, what: str = "already says this"):
        super().__init__(f"memory {memory_id!r} {what}", id=memory_id)


class WrongState(MemPlaneError):
    """The memory's state does not allow this."""

    reason = reasons.ERROR_REASON_WRONG_STATE

    def __init__(self, memory_id: str, state: str):
        super().__init__(f"memory {memory_id!r} is {state}", id=memory_id, state=state)


class PolicyShrinks(MemPlaneError):
    """The change removes more than the shrink guard allows."""

    reason = reasons.ERROR_REASON_POLICY_SHRINKS

    def __init__(self, losses: Sequence[str]):
        listed = "; ".join(losses[:5])
        super().__init__(f"the new set removes: {listed}; set allow_shrink to accept", losses=len(losses))


class RevisionNotFound(MemPlaneError):
    """No such policy revision."""

    reason = reasons.ERROR_REASON_REVISION_NOT_FOUND

    def __init__(self, generation: int):
        super().__init__(f"no policy revision of generation {generation}", generation=generation)


class ApiKeyNotFound(MemPlaneError):
    """No API key of this id was ever made."""

    reason = reasons.ERROR_REASON_API_KEY_NOT_FOUND

    def __init__(self, key_id: str):
        super().__init__(f"no API key {key_id!r}; ListApiKeys has their ids", key_id=key_id)


class OperationNotFound(MemPlaneError):
    """No such operation, or somebody else's, or one that was done long ago."""

    reason = reasons.ERROR_REASON_OPERATION_NOT_FOUND

    def __init__(self, name: str):
        super().__init__(f"no operation {name!r} of yours; one is known for 24 hours after it is done", name=name)


class Defect(MemPlaneError):
    """A fault of ours; the correlation id leads to the log."""

    def __init__(self, correlation_id: str):
        super().__init__("internal error; the log has it under the correlation id", correlation_id=correlation_id)


class NotOffered(MemPlaneError):
    """This server does not offer what was asked."""

    reason = reasons.ERROR_REASON_NOT_OFFERED


class Retryable(MemPlaneError):
    """It may work later: `retry_after_s` says when to try again."""

    def __init__(self, message: str, retry_after_s: float = 1.0, **metadata: str | int):
        super().__init__(message, **metadata)
        self.retry_after_s = retry_after_s


class PolicyAbsence(Enum):
    """Why a data plane has no policy: the name for programs (`cause` of PolicyNotLoaded), the value for people."""

    NOT_FETCHED = "the control plane has not sent one yet"
    NONE_IN_FORCE = "the control plane has none in force"
    NO_CONTROL_PLANE = "no connection to the control plane (--control)"
    NODE_KEY_REFUSED = "the control plane refuses the node key (MEMPLANE_DATA_NODE_KEY or --node-key)"
    NO_TRUSTED_KEY = "the file of --trusted-key holds no public key"
    UNTRUSTED = "what came is not signed by a key of --trusted-key"
    REFUSED = "the data plane refused what came; its log says why"


class PolicyNotLoaded(Retryable):
    """There is no policy yet, so nothing is allowed."""

    reason = reasons.ERROR_REASON_POLICY_NOT_LOADED

    def __init__(self, absence: PolicyAbsence = PolicyAbsence.NONE_IN_FORCE) -> None:
        super().__init__(f"no policy has been loaded yet: {absence.value}", retry_after_s=2.0, cause=absence.name)


class PolicyStale(Retryable):
    """The policy was not confirmed for so long that this data plane was told to serve less (`action`)."""

    reason = reasons.ERROR_REASON_POLICY_STALE

    def __init__(self, action: str):
        served = "nothing is served" if action == "deny" else "nothing is written"
        super().__init__(
            f"the control plane has not confirmed the policy for too long: {served}", retry_after_s=2.0, action=action
        )


class Unavailable(Retryable):
    """A backend that the answer needs is down."""

    reason = reasons.ERROR_REASON_BACKEND_UNAVAILABLE

    def __init__(self, backend: str, retry_after_s: float = 1.0):
        super().__init__(f"{backend} is unavailable", retry_after_s, backend=backend)


class Overloaded(Retryable):
    """Too much work at once."""

    reason = reasons.ERROR_REASON_OVERLOADED


class LimitReached(Overloaded):
    """A principal asks more than the policy lets it ask of one process; `limit` is what was reached."""

    def __init__(self, limit: str, allowed: float, retry_after_s: float):
        super().__init__(
            f"your limit is reached: {limit} {allowed:g}; other callers are served", retry_after_s, limit=limit
        )
