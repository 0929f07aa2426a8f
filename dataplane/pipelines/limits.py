"""What the policy allows of a text: its size, and its length before it is condensed."""

import asyncio
from collections.abc import Callable

from dataplane.logic.condense import condense
from memplane.errors import InvalidField
from memplane.policy.effective import NamespacePolicies


def check_size(field: str, content: str, policies: NamespacePolicies) -> None:
    """Raises InvalidField when the content has more bytes than the policy allows."""
    size, most = len(content.encode()), policies.write.max_content_bytes
    if size > most:
        raise InvalidField.one(field, f"has {size} bytes; the policy allows {most} (max_content_bytes)")


async def condensed(content: str, policies: NamespacePolicies, count_tokens: Callable[[str], int]) -> str:
    """The content, or an extract of it of at most `max_length` tokens; long texts are worked on in a thread."""
    most = policies.write.max_length
    # A token is at least one character, so a short text need not be counted.
    if len(content) <= most:
        return content
    return await asyncio.to_thread(_condensed, content, most, count_tokens)


def _condensed(content: str, most: int, count_tokens: Callable[[str], int]) -> str:
    return content if count_tokens(content) <= most else condense(content, most, count_tokens)
