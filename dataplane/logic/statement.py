"""What makes two memories the same statement, where their content is equal to the letter.

The same words are another statement from another speaker, under another fact key, as an episode of another time, or in
the working memory of another session. The record store holds ACTIVE memories of a namespace, subject and kind unique by
the key.
"""

import hashlib
from dataclasses import dataclass

from dataplane.logic.fact_keys import keys_differ
from dataplane.model import Kind, Layer


@dataclass(frozen=True, slots=True)
class Statement:
    """What a statement is told apart by, besides namespace, subject and kind. `event_time_us` counts for episodes."""

    content_hash: str
    speaker: str
    fact_key: str
    kind: Kind
    event_time_us: int | None
    layer: Layer
    session_id: str


def statement_key(statement: Statement) -> str:
    """The key, SHA-256 in hex of the length-prefixed parts."""
    time_us = statement.event_time_us if statement.kind is Kind.EPISODE else None
    session_id = statement.session_id if statement.layer is Layer.WORKING else ""
    parts = (statement.content_hash, statement.speaker, statement.fact_key, str(time_us), session_id)
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def is_same(one: Statement, other: Statement) -> bool:
    """Whether two statements of equal content are one, where the one may lack what the other tells.

    A missing fact key or episode time is no difference; a missing speaker is one.
    """
    if one.speaker != other.speaker or keys_differ(one.fact_key, other.fact_key):
        return False
    if one.kind is Kind.EPISODE and _differ(one.event_time_us, other.event_time_us):
        return False
    both_working = one.layer is Layer.WORKING and other.layer is Layer.WORKING
    return not (both_working and one.session_id != other.session_id)


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other
