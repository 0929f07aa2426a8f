"""Time expressions of a text, resolved against a reference time."""

from dataplane.logic.dates.resolve import TimeRange, resolve

__all__ = ["TimeRange", "resolve"]
