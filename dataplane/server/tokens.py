"""Opaque tokens of the contract: consistency tokens and page tokens.

A page token names the row after which the next page starts, and a digest of the query that made it and of who asked,
so that a token of another query or of somebody else is refused. It grants nothing: the scope of the call decides what
may be read.
"""

import base64
import binascii
import hashlib
import json

from google.protobuf.message import Message

from dataplane.server.checks import Notes
from memplane.errors import PageTokenMismatch

MAX_TOKEN_CHARS = 1_024
"""Longer than any page token of ours: a digest, a number and an id."""

_CONSISTENCY_PREFIX = "c1."


def consistency_token(position: int) -> str:
    """The token of an outbox position."""
    return f"{_CONSISTENCY_PREFIX}{position}"


def read_consistency_token(notes: Notes, token: str) -> int:
    """The outbox position of a token; 0 for none."""
    if not token:
        return 0
    number = token.removeprefix(_CONSISTENCY_PREFIX)
    if not token.startswith(_CONSISTENCY_PREFIX) or not number.isascii() or not number.isdigit() or len(number) > 18:
        notes.add("at_least_as_fresh", "is not a consistency token; give one that a write or search returned")
        return 0
    return int(number)


def page_token(request: Message, principal_id: str, after: tuple[int, str]) -> str:
    """The token of the page after a row, for the query of this request and for who made it."""
    content = json.dumps([_query_digest(request, principal_id), *after]).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def read_page_token(request: Message, principal_id: str) -> tuple[int, str] | None:
    """The row after which the page starts; None for the first page; PageTokenMismatch for any other token."""
    token: str = getattr(request, "page_token")  # noqa: B009 - every list request has one
    if not token:
        return None
    if len(token) > MAX_TOKEN_CHARS:
        raise PageTokenMismatch
    try:
        digest, number, text = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise PageTokenMismatch from error
    right_types = isinstance(number, int) and not isinstance(number, bool) and isinstance(text, str)
    if digest != _query_digest(request, principal_id) or not right_types or abs(number) >= 2**63:
        raise PageTokenMismatch
    return number, text


def _query_digest(request: Message, principal_id: str) -> str:
    copy = type(request).FromString(request.SerializeToString(deterministic=True))
    copy.ClearField("page_token")
    copy.ClearField("page_size")
    asked = copy.SerializeToString(deterministic=True) + b"\0" + principal_id.encode()
    return hashlib.sha256(asked).hexdigest()[:16]
