"""The hits of a search after it was asked whose word they are; see `logic.guard.consensus`."""

from collections import Counter
from collections.abc import Sequence

from dataplane.codec import parse_body
from dataplane.logic.guard.consensus import Heard, Standing, Voice, standings
from dataplane.logic.rank import Ranked
from dataplane.logic.tokens import STOP_WORDS, tokens
from dataplane.model import SourceType
from memplane.policy.guard import ConsensusPolicy, GuardPolicy

LONGEST = 2_000
"""Characters of a hit that are looked at. Unmeasured."""


def by_consensus(ranked: Sequence[Ranked], question: str, policy: GuardPolicy) -> list[Ranked]:
    """The hits in their order, those of a campaign last or left out."""
    consensus = policy.consensus
    if not policy.enabled or not consensus.enabled or not _may_hold_a_campaign(ranked, consensus):
        return list(ranked)
    found = standings(_words(question), [_heard(hit) for hit in ranked], consensus)
    judged = list(zip(found, ranked, strict=True))
    return [
        *(hit for standing, hit in judged if standing is Standing.KEPT),
        *(hit for standing, hit in judged if standing is Standing.LAST),
    ]


def _may_hold_a_campaign(ranked: Sequence[Ranked], policy: ConsensusPolicy) -> bool:
    """Whether enough hits share what the rows alone tell of a voice."""
    told = Counter((hit.candidate.memory.source_type, hit.candidate.memory.session_id) for hit in ranked)
    return max(told.values(), default=0) >= policy.statements


def _heard(hit: Ranked) -> Heard:
    memory = hit.candidate.memory
    message = parse_body(memory)
    voice = Voice(
        message.provenance.principal_id,
        int(memory.source_type),
        message.source.operator_id or message.agent_id,
        message.speaker,
        memory.session_id,
    )
    return Heard(_words(message.content), voice, memory.create_time_us, memory.source_type is SourceType.HUMAN)


def _words(text: str) -> frozenset[str]:
    return frozenset(tokens(text[:LONGEST])) - STOP_WORDS
