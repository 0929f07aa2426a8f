"""What the policy allows of a write: by whom, how large, and how long before it is condensed."""

import asyncio
from collections.abc import Callable

from dataplane.logic.condense import condense
from dataplane.model import Draft, Layer, Pool
from dataplane.pipelines.caller import Caller
from memplane.errors import InvalidField, PermissionDenied
from memplane.policy.cells import cell
from memplane.policy.effective import NamespacePolicies


def check_allowed(draft: Draft, caller: Caller) -> None:
    """Raises PermissionDenied when the caller may not write this draft, whatever layer the gate would choose."""
    for permission in permissions_for(draft.pool):
        if not any(caller.cells(permission, draft.namespace) & cell(layer, draft.kind, 0) for layer in Layer):
            raise PermissionDenied(permission, draft.namespace)


def permissions_for(pool: Pool) -> tuple[str, ...]:
    """What writing a memory into a pool takes."""
    return ("memory.write", "share.propose") if pool is Pool.SHARED else ("memory.write",)


def check_limits(draft: Draft, policies: NamespacePolicies) -> None:
    """Raises InvalidField when the draft is not one that its namespace takes."""
    check_size("content", draft.content, policies)
    if policies.subject_required and not draft.subject_id:
        raise InvalidField.one("subject_id", "is required in this namespace (subject_required)")


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
