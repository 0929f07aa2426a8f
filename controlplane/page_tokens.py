"""Sizes of pages, and page tokens that only the query that made them accepts."""

import base64
import binascii
import hashlib

from memplane.errors import InvalidField, PageTokenMismatch

MAX_PAGE_SIZE = 1000
_DIGEST_CHARS = 12


def page_size(given: int, default: int) -> int:
    """The size asked for, or the default for 0. Raises InvalidField."""
    if not 0 <= given <= MAX_PAGE_SIZE:
        raise InvalidField.one("page_size", f"1 to {MAX_PAGE_SIZE}, or 0 for {default}")
    return given or default


def page_token(query: str, position: str) -> str:
    """A token for the page after `position` of a query."""
    return base64.urlsafe_b64encode(f"{_digest(query, position)}{position}".encode()).decode()


def position_of(query: str, token: str) -> str | None:
    """The position in a token of this query; None when the token is empty. Raises PageTokenMismatch."""
    if not token:
        return None
    try:
        text = base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise PageTokenMismatch from error
    digest, position = text[:_DIGEST_CHARS], text[_DIGEST_CHARS:]
    if digest != _digest(query, position):
        raise PageTokenMismatch
    return position


def _digest(query: str, position: str) -> str:
    return hashlib.sha256(f"{query}\n{position}".encode()).hexdigest()[:_DIGEST_CHARS]
