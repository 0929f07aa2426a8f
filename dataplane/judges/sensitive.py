"""Finds the sensitive data of each row: `{"text"}` in, `{"spans": [{"type", "start", "end"}]}` out.

Types are those of `sensitive_policy`; offsets count characters, the end is exclusive.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dataplane.logic.sensitive.detect import detect


async def judge(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """What is found in each row's text, whatever a policy does with it. There are no settings."""
    for row in rows:
        found = detect(row["text"])
        yield {"spans": [{"type": each.type, "start": each.start, "end": each.end} for each in found]}
