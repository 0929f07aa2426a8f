"""Time expressions of a text, resolved against a reference time."""

from dataplane.logic.dates.resolve import resolve
from dataplane.logic.dates.spans import TimeRange

__all__ = ["TimeRange", "resolve"]
