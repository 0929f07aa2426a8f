"""Lists walked page by page: whole, without gaps that tell of hidden rows, and with tokens that serve nobody else."""

import grpc

from memplane.v1 import memory_service_pb2 as pb
from tests.leak.calls import MEMORY
from tests.leak.draws import Draws
from tests.leak.judge import Verdicts
from tests.leak.line import Answer, Line
from tests.leak.world import ADMIN, READ, Principal

METHOD = f"{MEMORY}/ListMemories"
MOST_PAGES = 30


class Walker:
    """Walks through what a principal may list."""

    def __init__(self, draws: Draws, verdicts: Verdicts, line: Line):
        self._draws = draws
        self._verdicts = verdicts
        self._line = line

    async def walk(self, principal: Principal) -> None:
        """One namespace that he may read: his pages together are what the administrator is shown, as far as he may."""
        world, draw = self._draws.world, self._draws.random
        places = [name for name in world.namespaces if world.may(principal, READ, name)]
        if not places:
            return
        request = pb.ListMemoriesRequest(namespace=draw.choice(places), page_size=draw.choice((1, 2, 5)))
        before = await self._all_of(request.namespace)
        walked = await self._pages(principal, request)
        after = await self._all_of(request.namespace)
        if before is None or walked is None or after is None:
            return
        self._verdicts.checks["walks"] += 1
        surely, maybe = self._visible(principal, before & after), self._visible(principal, before | after)
        if len(set(walked)) != len(walked) or not surely <= set(walked) <= maybe:
            what = f"{sorted(surely - set(walked))} missing, {sorted(set(walked) - maybe)} too many of {len(walked)}"
            self._fault("walk", principal, request, what)

    def _visible(self, principal: Principal, ids: set[str]) -> set[str]:
        truth = self._draws.truth
        return {each for each in ids if truth.sees_memory(principal, each, forgotten_too=False)}

    async def _all_of(self, namespace: str) -> set[str] | None:
        request = pb.ListMemoriesRequest(namespace=namespace, page_size=1000)
        answer = await self._line.send(METHOD, request.SerializeToString(), ADMIN.key)
        if answer.code is not grpc.StatusCode.OK:
            return None
        return {memory.id for memory in _page(answer).memories}

    async def _pages(self, principal: Principal, request: pb.ListMemoriesRequest) -> list[str] | None:
        """Ids on all his pages; None when a page failed or there are very many."""
        ids: list[str] = []
        for number in range(MOST_PAGES):
            answer = await self._line.send(METHOD, request.SerializeToString(), principal.key)
            if answer.code is not grpc.StatusCode.OK:
                return None
            page = _page(answer)
            ids += [memory.id for memory in page.memories]
            if number and not page.memories:
                self._fault("page", principal, request, "a token led to an empty page")
            if not page.next_page_token:
                return ids
            request.page_token = page.next_page_token
            await self._borrowed(principal, request)
        return None

    async def _borrowed(self, principal: Principal, request: pb.ListMemoriesRequest) -> None:
        """Somebody else tries the token with the very same query."""
        other = self._draws.random.choice([each for each in self._draws.world.principals if each != principal])
        answer = await self._line.send(METHOD, request.SerializeToString(), other.key)
        self._verdicts.checks["page tokens"] += 1
        if answer.code is grpc.StatusCode.OK:
            self._fault("token", other, request, f"a page token of {principal.name} was taken")

    def _fault(self, sort: str, principal: Principal, request: pb.ListMemoriesRequest, what: str) -> None:
        asked = " ".join(str(request).split())
        self._verdicts.report(sort, f"round {self._draws.truth.round}: {principal.name} {METHOD}: {what} | {asked}")


def _page(answer: Answer) -> pb.ListMemoriesResponse:
    return pb.ListMemoriesResponse.FromString(answer.messages[0])
