"""Sensitive data leaves a write before anything else sees it: what goes on is what may be kept.

The stage stands behind the limits and before the guard, the condenser, the embedder and the queue. A draft carries what
was masked in it (`Draft.redactions`), so that a queued write, masked when it was accepted, still comes to the decision
that its values called for.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from dataplane.codec import plain, struct_of
from dataplane.logic.sensitive.redact import Texts, redact, redact_text
from dataplane.model import Action, Draft, Redaction, State
from dataplane.pipelines.verdict import Verdict
from memplane.errors import InvalidField, Violation
from memplane.policy.effective import NamespacePolicies
from memplane.policy.sensitive import SensitivePolicy
from memplane.v1 import memory_pb2

LONG = 4_000
"""Characters from which a text is looked through in a thread: 1 to 4 ms (2026-11)."""

CODE = "SENSITIVE_DATA"


async def redacted(draft: Draft, policies: NamespacePolicies) -> Draft:
    """The draft as it may be kept. An embedding of what is masked is left out; the masked text gets its own."""
    given = Texts(
        content=draft.content,
        speaker=draft.speaker,
        fact_key=draft.fact_key,
        entity_type=draft.entity_type,
        category=draft.category,
        source_ref=draft.source.ref,
        tags=draft.tags,
        metadata=draft.metadata,
        structured=draft.structured,
    )
    clean, found = await _redacted(given, policies.sensitive)
    if not found:
        return draft
    return replace(
        draft,
        content=clean.content,
        speaker=clean.speaker,
        fact_key=clean.fact_key,
        entity_type=clean.entity_type,
        category=clean.category,
        source=replace(draft.source, ref=clean.source_ref),
        tags=clean.tags,
        metadata=clean.metadata,
        structured=clean.structured,
        embedding=draft.embedding if clean.content == draft.content else None,
        redactions=(*draft.redactions, *found),
    )


def with_redactions(verdict: Verdict, redactions: Sequence[Redaction]) -> Verdict:
    """The verdict with what was masked, and with what the policy wants of such a write; a refusal stays one."""
    verdict = replace(verdict, redactions=tuple(redactions))
    if rejected := _of(redactions, "reject"):
        return verdict.become(Action.REJECTED, CODE, f"{_told(rejected)}; the policy refuses it (sensitive_policy)")
    if verdict.action is not Action.REJECTED and (reviewed := _of(redactions, "review")):
        held = replace(verdict, state=State.PENDING_REVIEW)
        return held.become(Action.PENDING_REVIEW, CODE, f"{_told(reviewed)}; a person is to see it (sensitive_policy)")
    return verdict


async def redact_message(
    message: memory_pb2.Memory, before: memory_pb2.Memory, policies: NamespacePolicies
) -> tuple[Redaction, ...]:
    """Masks the free texts in which a message differs from the one before, in place; tells what was found.

    Raises InvalidField where the policy refuses such data.
    """
    changed = Texts(
        content=_new(message.content, before.content),
        speaker=_new(message.speaker, before.speaker),
        fact_key=_new(message.fact_key, before.fact_key),
        entity_type=_new(message.entity_type, before.entity_type),
        category=_new(message.category, before.category),
        source_ref=_new(message.source.ref, before.source.ref),
        tags=tuple(message.tags) if message.tags != before.tags else (),
        metadata=plain(message.metadata) if message.metadata != before.metadata else {},
        structured=plain(message.structured) if message.structured != before.structured else {},
    )
    clean, found = await _redacted(changed, policies.sensitive)
    if rejected := _of(found, "reject"):
        raise InvalidField(
            [Violation(f"memory.{item.field}", f"holds {_named(item)}; the policy refuses it") for item in rejected]
        )
    if found:
        _put_texts(message, clean)
    return found


def _put_texts(target: memory_pb2.Memory, clean: Texts) -> None:
    """Puts masked texts into a message; what is empty is left as it is."""
    for field in ("content", "speaker", "fact_key", "entity_type", "category"):
        if value := getattr(clean, field):
            setattr(target, field, value)
    if clean.source_ref:
        target.source.ref = clean.source_ref
    if clean.tags:
        target.ClearField("tags")
        target.tags.extend(clean.tags)
    if clean.metadata:
        target.metadata.CopyFrom(struct_of(clean.metadata))
    if clean.structured:
        target.structured.CopyFrom(struct_of(clean.structured))


def must_wait(redactions: Sequence[Redaction]) -> bool:
    """Whether a person is to see what was found."""
    return bool(_of(redactions, "review"))


async def redacted_text(text: str, policy: SensitivePolicy) -> str:
    """One text as it may be kept."""
    if len(text) > LONG:
        return await asyncio.to_thread(redact_text, text, policy)
    return redact_text(text, policy)


def redacted_reason(reason: str, policies: NamespacePolicies) -> str:
    """The reason of a change as it may be kept."""
    return redact_text(reason, policies.sensitive)


def _told(redactions: Sequence[Redaction]) -> str:
    """What was found where, for people; never the value."""
    return "; ".join(f"{item.field} holds {_named(item)}" for item in redactions)


def _named(item: Redaction) -> str:
    return f"{item.type} ({item.count})" if item.count > 1 else item.type


def _of(redactions: Sequence[Redaction], action: str) -> list[Redaction]:
    return [item for item in redactions if item.action == action]


def _new(now: str, before: str) -> str:
    return now if now != before else ""


async def _redacted(texts: Texts, policy: SensitivePolicy) -> tuple[Texts, tuple[Redaction, ...]]:
    if texts.size > LONG:
        return await asyncio.to_thread(redact, texts, policy)
    return redact(texts, policy)
