"""The hits of a search after it was asked whose word they are; see `logic.guard.consensus`."""

from collections import Counter
from collections.abc import Sequence

from dataplane.codec import parse_body
from dataplane.logic.guard.consensus import Heard, Standing, Voice, standings
from dataplane.logic.rank import Ranked
from dataplane.logic.tokens import STOP_WORDS, tokens
from dataplane.model import SourceType
from memplane.policy.guard import GuardPolicy
from memplane.v1 import memory_pb2

JUDGED = 64
"""Hits that are looked at, best first: 80 µs each where one voice has enough of them (2026-11)."""
LONGEST = 2_000
"""Characters of a hit that are looked at. Unmeasured."""


def by_consensus(ranked: Sequence[Ranked], question: str, policy: GuardPolicy) -> list[Ranked]:
    """The hits in their order, those of a campaign last or left out."""
    if not policy.enabled or not policy.consensus.enabled or len(ranked) < policy.consensus.statements:
        return list(ranked)
    head, tail = ranked[:JUDGED], ranked[JUDGED:]
    messages = [parse_body(hit.candidate.memory) for hit in head]
    voices = [_voice(message) for message in messages]
    if max(Counter(voices).values()) < policy.consensus.statements:
        return list(ranked)
    heard = [_heard(*told, question) for told in zip(head, messages, voices, strict=True)]
    found = standings(_words(question), heard, policy.consensus)
    judged = list(zip(found, head, strict=True))
    kept = [hit for standing, hit in judged if standing is Standing.KEPT]
    return [*kept, *tail, *(hit for standing, hit in judged if standing is Standing.LAST)]


def _voice(message: memory_pb2.Memory) -> Voice:
    source = message.source
    writer = source.operator_id or message.agent_id
    return Voice(message.provenance.principal_id, int(source.type), writer, message.speaker, message.session_id)


def _heard(hit: Ranked, message: memory_pb2.Memory, voice: Voice, question: str) -> Heard:
    memory = hit.candidate.memory
    is_own = memory.source_type is SourceType.HUMAN or message.content == question
    return Heard(_words(message.content), voice, memory.create_time_us, is_own)


def _words(text: str) -> frozenset[str]:
    return frozenset(tokens(text[:LONGEST])) - STOP_WORDS
