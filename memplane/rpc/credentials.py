"""Reads a caller's credentials from a call's metadata."""

from typing import Any

import grpc

from memplane.errors import Unauthenticated

_SCHEME = "bearer "
_MAX_KEY_CHARS = 512


def bearer_key(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The key of `authorization: Bearer KEY`; Unauthenticated when there is none or it is no such thing."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str) and value[: len(_SCHEME)].lower() == _SCHEME:
            key = value[len(_SCHEME) :].strip()
            if 0 < len(key) <= _MAX_KEY_CHARS:
                return key
    raise Unauthenticated
