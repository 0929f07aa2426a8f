"""Files of this process that may not grow, as on a full disk; what lies below the bound may be written over."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_may_have(size_bytes: int) -> Iterator[None]:
    """Writes beyond fail within the block, in every thread."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
