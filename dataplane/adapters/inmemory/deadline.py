"""The port's promise about deadlines, for adapters that never wait."""

import asyncio

from dataplane.errors import BackendUnavailable


def check(backend: str, deadline_s: float) -> None:
    """Raises BackendUnavailable when an instant of the event loop's clock has passed."""
    if asyncio.get_running_loop().time() > deadline_s:
        raise BackendUnavailable(backend, "deadline passed")
