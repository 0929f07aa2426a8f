"""What every write queue's figures must lie within."""

from collections.abc import Mapping

QUEUE_RANGES: Mapping[str, tuple[float, float]] = {
    "max_entries": (1, 100_000_000),
    "retry_after_s": (0.01, 3_600),
    "claim_after_s": (0.01, 3_600),
}
"""By the name of the field; both ends are in."""
