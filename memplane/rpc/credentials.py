"""Reads a caller's credentials from a call's metadata."""

from typing import Any, Final

import grpc

from memplane.errors import Unauthenticated

_SCHEME: Final = "bearer "
MAX_BEARER_CHARS: Final = 8 * 1024
"""Signed tokens with many groups are some kilobytes; all metadata of a call has 16 KiB."""

_Context = grpc.aio.ServicerContext[Any, Any]


def bearer_of(context: _Context) -> str | None:
    """What `authorization: Bearer …` carries; None: the call has no such metadata.

    Raises:
        Unauthenticated: It stands there twice, with another scheme, empty, or longer than MAX_BEARER_CHARS.
    """
    given = [value for name, value in context.invocation_metadata() or () if name == "authorization"]
    if not given:
        return None
    (value,) = given if len(given) == 1 else ("",)
    bearer = (
        value[len(_SCHEME) :].strip() if isinstance(value, str) and value[: len(_SCHEME)].lower() == _SCHEME else ""
    )
    if not bearer:
        raise Unauthenticated("the metadata authorization must be there once, as 'Bearer API_KEY_OR_TOKEN'")
    if len(bearer) > MAX_BEARER_CHARS:
        raise Unauthenticated(f"the bearer text has more than {MAX_BEARER_CHARS} characters")
    return bearer


def bearer_key(context: _Context) -> str:
    """As `bearer_of`; Unauthenticated also when there is none."""
    bearer = bearer_of(context)
    if bearer is None:
        raise Unauthenticated
    return bearer
