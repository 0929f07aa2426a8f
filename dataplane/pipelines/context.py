"""A context block: a search whose hits are laid out for a prompt within a token budget."""

from dataclasses import dataclass

from dataplane.codec import parse_body
from dataplane.logic.context import ContextItem, RenderedContext, render_context
from dataplane.logic.rank import Ranked
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.search import SearchAnswer, SearchPipeline, SearchQuery
from dataplane.pipelines.spaces import Spaces


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """The block and the search it came from."""

    block: RenderedContext
    search: SearchAnswer


class ContextPipeline:
    """Lays out what a search found."""

    def __init__(self, search: SearchPipeline, spaces: Spaces):
        self._search = search
        self._spaces = spaces

    async def context(self, query: SearchQuery, token_budget: int, caller: Caller, deadline_s: float) -> ContextAnswer:
        """The block for a question; `token_budget` 0: the policy's."""
        answer = await self._search.search(query, caller, deadline_s)
        policy = answer.policies.context
        items = [_item(hit) for hit in answer.hits]
        budget = token_budget or policy.token_budget
        return ContextAnswer(render_context(items, budget, self._spaces.current.embedder.count_tokens, policy), answer)


def _item(hit: Ranked) -> ContextItem:
    memory = hit.candidate.memory
    time_us = memory.event_time_us if memory.event_time_us is not None else memory.create_time_us
    content = parse_body(memory).content
    return ContextItem(memory.memory_id, content, time_us, memory.source_type, memory.confidence, memory.layer)
