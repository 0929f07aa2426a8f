"""Resolves the time expression of each row: `{"now", "text"}` in, `{"start", "end"}` out, null where there is none."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from dataplane.logic.dates import resolve


async def judge(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, str | None]]:
    """The range of each row's text, in the local time of its `now`. There are no settings."""
    for row in rows:
        found = resolve(row["text"], datetime.fromisoformat(row["now"]))
        yield {
            "start": found.start.isoformat() if found else None,
            "end": found.end.isoformat() if found else None,
        }
