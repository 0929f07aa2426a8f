"""What several methods of PolicyAdminService check of their requests."""

import hashlib
from typing import Final, Literal, Protocol, TypeVar

from google.protobuf import duration_pb2, message

from controlplane.documents import Document
from memplane.errors import InvalidField
from memplane.v1 import policy_admin_service_pb2 as admin_pb2

MAX_WAIT_S: Final = 60.0
MAX_REQUEST_ID_BYTES: Final = 128
MAX_COMMENT_BYTES: Final = 1024

_M = TypeVar("_M", bound=message.Message)


class Waiting(Protocol):
    """A request that may wait for data planes."""

    @property
    def wait_for_acks(self) -> duration_pb2.Duration:
        """How long."""
        ...


def wait_s_of(request: Waiting) -> float:
    """How long a request wants to wait for data planes, in seconds; 0: not at all. Raises InvalidField."""
    given = request.wait_for_acks
    seconds = given.seconds + given.nanos / 1e9
    if not 0.0 <= seconds <= MAX_WAIT_S:
        raise InvalidField.one("wait_for_acks", f"from 0 to {MAX_WAIT_S:.0f} s")
    return seconds


class Inline(Protocol):
    """A request that may bring documents."""

    @property
    def inline(self) -> admin_pb2.InlineDocuments:
        """The documents."""
        ...

    def HasField(self, field_name: Literal["inline"]) -> bool:  # noqa: N802 - protobuf's name
        """Whether there are any."""
        ...


def inline_of(request: Inline) -> list[Document] | None:
    """The documents that a request brings; None: those of the policy folder. Raises InvalidField."""
    if not request.HasField("inline"):
        return None
    if not request.inline.documents:
        raise InvalidField.one("inline.documents", "at least one; leave `inline` out to take the policy folder")
    return [Document(document.name, document.content) for document in request.inline.documents]


def check_bytes(field: str, value: str, most: int) -> None:
    """Raises InvalidField for a text of more bytes, or with a NUL, which PostgreSQL does not keep."""
    if "\0" in value:
        raise InvalidField.one(field, "a NUL character; remove it")
    size = len(value.encode())
    if size > most:
        raise InvalidField.one(field, f"{size} bytes; at most {most}")


def payload_sha256(request: message.Message, *without: str) -> str:
    """Digest of what a request asks for, by which retries are told from misuse: all but the fields named."""
    payload = _copy(request)
    for field in without:
        payload.ClearField(field)
    body = payload.SerializeToString(deterministic=True)
    return hashlib.sha256(request.DESCRIPTOR.full_name.encode() + b"\n" + body).hexdigest()


def _copy(given: _M) -> _M:
    copied = type(given)()
    copied.CopyFrom(given)
    return copied
