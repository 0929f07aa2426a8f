"""A seeded run: rounds of calls at once, and between them reloads, failures and forgets; then a verdict."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import grpc
from google.longrunning import operations_pb2

from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import KEEP_ALL
from tests.leak.calls import GENERATORS, MEMORY, Asked, drawn
from tests.leak.draws import Draws
from tests.leak.judge import Judge, Verdicts, query_of
from tests.leak.line import Answer, Line
from tests.leak.planes import Open, WatchedPlane, watched_plane
from tests.leak.truth import Truth
from tests.leak.twins import borrowed_request_id, compare, twins
from tests.leak.walks import Walker
from tests.leak.words import Words
from tests.leak.world import ADMIN, TENANTS, Principal, World

AT_ONCE = 6
LOOKS = 3
STRANGER = "mpk_00000000_nobody-ever-made-this-key"
BREAKABLE = ("vectors", "texts", "cache", "embedder", "records")
Spoil = Callable[[dict[str, Any]], None]
_SHARES = {"writer": 6, "reader": 3, "pool": 3, "facts": 3, "lasting": 2, "deep": 2}
"""How often who calls."""


def unspoilt(_ports: dict[str, Any]) -> None:
    """Leaves the ports as they are."""


@dataclass(frozen=True)
class Plan:
    """How long, from which seed; `conditions`: principals with conditions on kind, layer and sensitivity, too.

    It ends after `seconds` or `rounds`, whichever comes first. `until_fault`: with the first fault. `watches_ports`
    False: what adapters hand out is not looked at, answers alone are.
    """

    seed: int
    seconds: float
    rounds: int = 1_000_000
    conditions: bool = True
    until_fault: bool = False
    watches_ports: bool = True


class Run:
    """One run on one plane."""

    def __init__(self, plan: Plan, draws: Draws, verdicts: Verdicts, made: WatchedPlane, line: Line):
        self._plan = plan
        self._draws = draws
        self._verdicts = verdicts
        self._made = made
        self._line = line
        self._judge = Judge(draws.truth, verdicts)
        self._walker = Walker(draws, verdicts, line)
        self._generation = 1
        self._broken_for = 0

    async def go(self) -> None:
        """All the rounds."""
        until_s = monotonic() + self._plan.seconds
        await self._sweep()
        for _ in range(self._plan.rounds):
            if monotonic() > until_s or (self._plan.until_fault and self._verdicts.faults):
                break
            await self._round()
        for what in self._draws.truth.misplaced:
            self._verdicts.report("misplaced", what)

    async def _sweep(self) -> None:
        """Each RPC once by who may do most, so that there is something to be seen, and none is left out."""
        writers = [each for each in self._draws.world.principals if each.name.endswith("writer")]
        for caller in (*writers, ADMIN):
            self._draws.truth.round += 1
            fill = [GENERATORS[f"{MEMORY}/BatchWriteMemories"]] * 4
            for generate in (*fill, *GENERATORS.values()):
                await self._together([generate(self._draws, caller)])
            self._draws.truth.round += 1
            await self._walker.walk(caller)

    async def _round(self) -> None:
        draws = self._draws
        draws.truth.round += 1
        self._shake()
        callers = [self._caller() for _ in range(AT_ONCE)]
        calls = [drawn(draws, caller) for caller in callers]
        questions = [each for each in calls if each.any_of]
        if draws.chance(0.25):  # both tenants ask the same at once, and then again
            calls += [Asked(each.method, self._caller(), each.request, any_of=each.any_of) for each in questions]
        await self._together(calls)
        if draws.chance(0.25):
            await self._together([each for each in calls if each.any_of])
        if draws.chance(0.2):
            await self._twins()
        if draws.chance(0.1):
            await self._walker.walk(self._caller())
        if draws.chance(0.05):
            await self._stranger()

    def _caller(self) -> Principal:
        if self._draws.chance(0.05):
            return ADMIN
        principals = self._draws.world.principals
        shares = [_SHARES.get(each.name.rpartition("-")[2], 1) for each in principals]
        return self._draws.random.choices(principals, shares)[0]

    async def _together(self, calls: Sequence[Asked]) -> None:
        for asked in calls:
            self._prepare(asked)
        answers = await asyncio.gather(
            *(self._line.send(each.method, each.request.SerializeToString(), each.principal.key) for each in calls)
        )
        for asked, answer in zip(calls, answers, strict=True):
            self._note(asked, answer)
        for asked, answer in zip(calls, answers, strict=True):
            self._judge.judge(asked, answer)

    def _prepare(self, asked: Asked) -> None:
        for namespace, part in asked.plants:
            self._draws.truth.plant(namespace, part.SerializeToString())
            self._draws.truth.written_by(asked.principal, part.SerializeToString())

    def _note(self, asked: Asked, answer: Answer) -> None:
        """Keeps what others may try to use."""
        seen, name = self._draws.seen, asked.method.rpartition("/")[2]
        if answer.code is not grpc.StatusCode.OK:
            return
        if request_id := getattr(asked.request, "request_id", ""):
            seen.made[asked.principal.name].append(asked)
            seen.used[asked.plants[0][0] if asked.plants else ""].append((asked.principal.name, request_id))
        seen.asked.append((asked.method, asked.request.SerializeToString()))
        for operation in _operations_in(name, answer.messages[0]):
            if self._draws.truth.operations.setdefault(operation, asked.principal.name) == asked.principal.name:
                seen.operations.append(operation)
        if name in _RESPONSES:
            response: Any = _RESPONSES[name].FromString(answer.messages[0])
            if getattr(response, "next_page_token", ""):
                self._draws.truth.pages[response.next_page_token] = (asked.principal.name, query_of(asked))
                seen.pages.append(
                    (asked.method, asked.principal.name, asked.request.SerializeToString(), response.next_page_token)
                )
            if getattr(response, "consistency_token", ""):
                seen.tokens.append(response.consistency_token)

    async def _twins(self) -> None:
        draws = self._draws
        caller = draws.random.choice(draws.world.principals)
        for pair in twins(draws, caller):
            await self._compared(partial(compare, pair, self._line))
        self._verdicts.checks["request ids"] += 1
        if found := await borrowed_request_id(draws, caller, self._line):
            self._verdicts.report("twins", f"round {draws.truth.round}: {found}")

    async def _compared(self, differ: Callable[[], Awaitable[str]]) -> None:
        """A fault if they differ whenever one looks: something may fail or recover between two calls."""
        self._verdicts.checks["twins"] += 1
        for _ in range(LOOKS):
            if not (found := await differ()):
                return
        self._verdicts.report("twins", f"round {self._draws.truth.round}: {found}")

    async def _stranger(self) -> None:
        """Who has no key, or one that nobody made, learns nothing."""
        asked = drawn(self._draws, ADMIN)
        answer = await self._line.send(
            asked.method, asked.request.SerializeToString(), self._draws.random.choice(("", STRANGER))
        )
        self._verdicts.checks["strangers"] += 1
        if answer.code is not grpc.StatusCode.UNAUTHENTICATED or answer.messages:
            self._verdicts.report("stranger", f"round {self._draws.truth.round}: {asked.method}: {answer.code}")

    def _shake(self) -> None:
        """Now and then a right goes or comes back, a backend fails or recovers, time passes."""
        draws, made = self._draws, self._made
        if draws.chance(0.08):
            if draws.chance(0.6):
                draws.world.take_away(draws.random)
            else:
                draws.world.give_back()
            self._generation += 1
            made.plane.use(policy_of(draws.world), self._generation)
        if self._broken_for:
            self._broken_for -= 1
            if not self._broken_for:
                made.mend()
        elif draws.chance(0.08):
            self._broken_for = draws.random.randrange(1, 8)
            for name in draws.random.sample(BREAKABLE, draws.random.choice((1, 1, 2))):
                made.switches[name].down = {"all"}
        if draws.chance(0.05):
            made.plane.clock.forward(seconds=draws.random.choice((1, 90)))


_RESPONSES: Mapping[str, Any] = {
    "ListMemories": pb.ListMemoriesResponse,
    "ListMemoryVersions": pb.ListMemoryVersionsResponse,
    "ListOperations": operations_pb2.ListOperationsResponse,
    "SearchMemories": pb.SearchMemoriesResponse,
    "WriteMemory": pb.WriteMemoryResponse,
    "UpdateMemory": pb.UpdateMemoryResponse,
    "ForgetMemory": pb.ForgetMemoryResponse,
}


def _operations_in(name: str, message: bytes) -> Sequence[str]:
    """Names of operations that a call began."""
    if name == "WriteMemory":
        response = pb.WriteMemoryResponse.FromString(message)
        return [response.operation.name] if response.operation.name else []
    if name == "Reindex":
        return [operations_pb2.Operation.FromString(message).name]
    if name == "BatchWriteMemories":
        batch = pb.BatchWriteMemoriesResponse.FromString(message)
        return [each.response.operation.name for each in batch.results if each.response.operation.name]
    return []


def policy_of(world: World) -> Mapping[str, Any]:
    """The policy: everything is kept, the shared pool waits for nobody, and the rights as they stand."""
    return {**KEEP_ALL, "namespace_policy": {"shared_pool_approval": False}, "rbac": world.rbac()}


def _unheard(_sort: str, _what: str) -> None:
    """Passes over what the ports' watchers find."""


async def run(plan: Plan, opened: Open, spoil: Spoil = unspoilt) -> Verdicts:
    """The verdict on a plane over these stores."""
    draw = random.Random(plan.seed)
    words = Words(draw)
    world = World(plan.conditions, {root: words.marker() for root in TENANTS})
    truth, verdicts = Truth(world), Verdicts()
    report = verdicts.report if plan.watches_ports else _unheard
    async with watched_plane(opened, truth, report, spoil, policy_of(world)) as made:
        async with grpc.aio.insecure_channel(made.plane.address) as channel:
            await Run(plan, Draws(draw, world, truth, words), verdicts, made, Line(channel)).go()
        verdicts.checks["ports"] = sum(each.checked for each in made.watched.values())
    return verdicts
