"""A data plane without sockets whose process can die between any two calls of its stores, and be started again.

Its indexes lie in memory and lose with the process what was not flushed. Every call is noted as the chaos harness notes
the calls of its clients, and judged by the same checker.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from dataplane.adapters.inmemory.embedder import DIMENSION, HashEmbedder
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.codec import parse_body
from dataplane.model import Memory, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.check_indexes import CheckQuestion
from dataplane.pipelines.list import Listing
from dataplane.pipelines.projector import ProjectorOptions
from dataplane.pipelines.purge import PurgeOptions
from dataplane.pipelines.rebuild import RebuildOptions
from dataplane.pipelines.reindex import ReindexOptions
from dataplane.pipelines.search import SearchQuery
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import RecordStore
from dataplane.server.requests import read_draft
from dataplane.server.revisions import read_forgetting, read_revision
from dataplane.stores import Stores
from dataplane.wiring import Surroundings, Wired, WireOptions, wire
from memplane.errors import MemPlaneError
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet, WritePolicy
from memplane.policy.rbac import Grant, Principal, Rbac
from memplane.policy.retrieve import RetrievePolicy
from memplane.policy.snapshot import PolicySnapshot
from memplane.rpc.errors import code_of
from memplane.v1 import maintenance_service_pb2 as maintenance_pb
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.calls import told_of_write
from tests.chaos.checker import Report, check
from tests.chaos.history import Entry, FinalMemory, FinalState, markers_in
from tests.chaos.reads import SETTLED_S
from tests.deadline import eventually_async
from tests.property.crashes import Crash, Death, mortal

NAMESPACE = "tenant-0.common"
NOW_US = 1_760_000_000_000_000
STEP_S = 2 * SETTLED_S
"""Between the starts of two calls in the history: whatever was acknowledged is settled by the next."""

WITHIN_S = 60.0
"""For what takes milliseconds on an idle machine."""

GRANT = Grant(namespace="*", permissions=("memory.read", "memory.write", "memory.forget", "maintenance"))
OPTIONS = WireOptions(
    projector=ProjectorOptions(
        owner="node/whoever",  # what the one before held is free at its start
        lease_s=4.0,
        doubt_s=0.1,
        poll_s=0.02,
        backoff_s=0.01,
        max_backoff_s=0.02,
        purge=PurgeOptions(delay_s=0.05, rest_ratio=0.0),
    ),
    record_interval_s=0.01,
    reindex=ReindexOptions(look_s=0.02, abandoned_s=0.1, rebuild=RebuildOptions()),
)

OpenStore = Callable[[], Awaitable[RecordStore]]
Does = Callable[[], Awaitable[dict[str, Any]]]
"""A call that gives what it told, as the history has it."""


def snapshot() -> PolicySnapshot:
    """Keeps everything, merges no paraphrases."""
    write = WritePolicy(threshold=0.0, short_term_threshold=0.0, dedup=False)
    policies = PolicySet(
        rbac=Rbac(principals={"agent": Principal(grants=(GRANT,))}),
        write_policy=write,
        retrieve_policy=RetrievePolicy(),
    )
    return PolicySnapshot("sha256:1", 1, 0, EffectivePolicies(policies), AccessIndex(policies.rbac, None))


@dataclass
class Clock:
    time_us: int = NOW_US

    def now_us(self) -> int:
        return self.time_us


def _tell_of_the_living(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tasks of a dead process end by its death; nobody asks them."""
    if not isinstance(context.get("exception"), Crash):
        loop.default_exception_handler(context)


def _is_ours(task: "asyncio.Task[Any]") -> bool:
    """Whether it is the process's own; what PostgreSQL's store or driver began ends when the store is closed."""
    path = task.get_coro().cr_code.co_filename  # type: ignore[union-attr]  # a coroutine, or it would not be a task
    return "/dataplane/" in path and "/adapters/postgres/" not in path


class Volatile:
    """An index of which a dead process leaves what was flushed."""

    def __init__(self, index: Any):
        self.index = index
        self._durable = self._content()
        flush, clear = index.flush, index.clear

        async def flushed(deadline_s: float) -> None:
            await flush(deadline_s)
            self._durable = self._content()

        async def cleared(deadline_s: float) -> None:
            await clear(deadline_s)
            self._durable = self._content()

        index.flush, index.clear = flushed, cleared

    def _content(self) -> dict[str, Any]:
        return {name: copy.copy(value) for name, value in vars(self.index).items() if isinstance(value, dict)}

    def lose(self) -> None:
        """What was not flushed is gone."""
        vars(self.index).update({name: copy.copy(value) for name, value in self._durable.items()})


@dataclass
class MortalPlane:
    """One node over stores that outlive it. `own`: its indexes are compared at every start, else others fill them."""

    open_store: OpenStore
    own: bool
    clock: Clock = field(default_factory=Clock)
    death: Death = field(default_factory=Death)
    entries: list[Entry] = field(default_factory=list)
    crashes: int = 0
    positions: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self._vectors = Volatile(InMemoryVectorIndex(DIMENSION, HashEmbedder().model))
        self._texts = Volatile(InMemoryTextIndex())
        self._store: RecordStore | None = None
        self._wired: Wired | None = None
        self._snapshot = snapshot()

    @property
    def wired(self) -> Wired:
        assert self._wired is not None
        return self._wired

    @property
    def caller(self) -> Caller:
        return Caller(Identity("agent"), self._snapshot)

    @property
    def deadline_s(self) -> float:
        return asyncio.get_running_loop().time() + WITHIN_S

    async def start(self) -> None:
        """A new process."""
        asyncio.get_running_loop().set_exception_handler(_tell_of_the_living)
        self.death = Death()
        self._store = await self.open_store()
        stores = Stores(
            records=mortal(self._store, self.death),
            spaces=Spaces([VectorSpace(HashEmbedder(), mortal(self._vectors.index, self.death), None)]),
            texts=mortal(self._texts.index, self.death),
            cache=InProcessCache(1 << 20, asyncio.get_running_loop().time),
            own_vectors=self.own,
            own_texts=self.own,
        )
        self._wired = wire(stores, Surroundings(lambda: self._snapshot, self.clock, "node"), OPTIONS)
        await self._wired.start(paused=False)

    async def die(self, *, wiped: bool = False) -> None:
        """kill -9, and a new process; `wiped`: with empty indexes."""
        self.death.is_dead = True
        self.crashes += 1
        left = [task for task in asyncio.all_tasks() - {asyncio.current_task()} if _is_ours(task)]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert self._store is not None
        await self._store.close()
        for index in (self._vectors, self._texts):
            index.lose()
            if wiped:
                await index.index.clear(self.deadline_s)
        await self.start()

    async def call(self, method: str, asked: dict[str, Any], does: Does, intent: int, attempt: int = 0) -> Entry:
        """Does it, notes it, and starts the process again if it died of it."""
        start_s = len(self.entries) * STEP_S
        code, told = "OK", {}
        try:
            told = await does()
        except Crash:
            code = "UNAVAILABLE"
        except MemPlaneError as error:
            code = code_of(error).name
        entry = Entry(
            client=0, tenant=0, intent=intent, method=method, start_s=start_s, end_s=start_s + 1, attempt=attempt,
            deadline_s=WITHIN_S, code=code, asked=asked, told=told,
        )  # fmt: skip
        self.entries.append(entry)
        self.clock.time_us += 1_000_000
        if self.death.is_dead:
            await self.die()
        self.death.arm(None)
        await self.look_at_position()
        return entry

    async def look_at_position(self) -> None:
        """Positions of the outbox never go back."""
        assert self._store is not None
        position = await self._store.last_position(self.deadline_s)
        assert position >= self.positions[-1]
        self.positions.append(position)

    async def write(self, request: pb.WriteMemoryRequest) -> dict[str, Any]:
        draft = read_draft(request, self.clock.now_us(), DIMENSION)
        settled = await self.wired.pipelines.write.write(draft, self.caller, self.deadline_s)
        return {**told_of_write(settled.response), "token": str(settled.position)}

    async def update(self, request: pb.UpdateMemoryRequest) -> dict[str, Any]:
        revision = read_revision(request, self.clock.now_us())
        response, position = await self.wired.pipelines.update.update(revision, self.caller, self.deadline_s)
        return {"id": response.memory.id, "version": response.memory.version, "token": str(position)}

    async def forget(self, request: pb.ForgetMemoryRequest) -> dict[str, Any]:
        forgetting = read_forgetting(request)
        response, _ = await self.wired.pipelines.forget.forget(forgetting, self.caller, self.deadline_s)
        return {"id": response.id}

    async def search(self, words: str) -> dict[str, Any]:
        query = SearchQuery(namespaces=(NAMESPACE,), query=words)
        answer = await self.wired.pipelines.search.search(query, self.caller, self.deadline_s)
        memories = [hit.candidate.memory for hit in answer.hits]
        texts = [markers_in(parse_body(memory).content)[0] for memory in memories]
        hits = [(each.memory_id, each.version, word, NAMESPACE) for each, word in zip(memories, texts, strict=True)]
        return {"hits": hits, "markers": texts, "degraded": [note.backend for note in answer.degraded.messages()]}

    async def rebuild(self, kind: maintenance_pb.IndexKind.ValueType) -> None:
        """Begins a rebuild; it may die with the process, whose successor goes on with it."""
        request = maintenance_pb.ReindexRequest(index=kind)
        await self.wired.maintenance.reindexing.begin(request, self.caller, self.deadline_s)

    async def come_level(self) -> None:
        """Everything that waits reaches the indexes; what they hold is what the record store says."""
        await eventually_async(self._behind, lambda left: not left, WITHIN_S)
        checks = await self.wired.maintenance.checks.look(CheckQuestion(full=True), self.deadline_s)
        assert all(check.consistent and not check.orphan_count for check in checks), checks

    async def _behind(self) -> list[str]:
        assert self._store is not None
        followed = await self._store.progress(self.deadline_s)
        waiting = [f"{each.index}: {each.due_count} wait" for each in followed if each.due_count or each.dead_count]
        operations = await self._store.list_operations("", 100, self.deadline_s)
        running = [operation.name for operation in operations if not operation.is_done]
        return [*waiting, *running, *self.wired.projectors.unlevel]

    async def judged(self) -> Report:
        """What the checker says of all calls and of what is there now."""
        return check(self.entries, FinalState(memories=tuple(await self._memories())))

    async def _memories(self) -> list[FinalMemory]:
        states = frozenset({State.ACTIVE, State.COLD, State.SUPERSEDED, State.SOFT_DELETED})
        listing = Listing(namespace=NAMESPACE, states=states, page_size=1_000)
        page = await self.wired.pipelines.list.list(listing, self.caller, self.deadline_s)
        return [_final(memory, state) for memory, state, _ in page.rows]

    async def stop(self) -> None:
        """The end in good order."""
        assert self._store is not None
        await self.wired.stop()
        await self._store.close()


def _final(memory: Memory, state: State) -> FinalMemory:
    return FinalMemory(
        id=memory.memory_id,
        tenant=0,
        namespace=memory.namespace,
        subject=memory.subject_id,
        kind=memory.kind.name,
        state=state.name,
        version=memory.version,
        marker=markers_in(parse_body(memory).content)[0],
        fact_key=memory.fact_key,
    )
