"""Builds every pipeline over opened stores. Tests build theirs by the same functions."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from dataplane.adapters.system import Ids
from dataplane.adapters.wrappers.cached_records import cached_records
from dataplane.adapters.wrappers.counted_records import CountedRecords
from dataplane.adapters.wrappers.hot_memories import hot_memories
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import OutboxRow
from dataplane.codec import fields_of, parse_body
from dataplane.guards import Guards
from dataplane.logic.beacon import MARKS
from dataplane.logic.tokens import TOKENIZER, tokens
from dataplane.model import IndexEntry
from dataplane.pair_model import shipped_pair_model
from dataplane.pipelines.answer_cache import AnswerCache
from dataplane.pipelines.apply import ApplyOptions, ApplyParts, QueueConsumer
from dataplane.pipelines.beacons import BeaconOptions, BeaconParts, Beacons, Witness
from dataplane.pipelines.check_indexes import CheckIndexes
from dataplane.pipelines.context import ContextPipeline
from dataplane.pipelines.dead_letters import DeadLetters
from dataplane.pipelines.enqueue import EnqueueParts, EnqueuePipeline
from dataplane.pipelines.followed import FollowedIndex, FollowedIndexes
from dataplane.pipelines.forget import ForgetParts, ForgetPipeline
from dataplane.pipelines.get import GetPipeline
from dataplane.pipelines.guard import Guard
from dataplane.pipelines.index_care import CareParts, IndexCare
from dataplane.pipelines.lineage import Lineage
from dataplane.pipelines.list import ListPipeline
from dataplane.pipelines.neighbours import Neighbours
from dataplane.pipelines.operations import OperationsPipeline
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projection import Projection
from dataplane.pipelines.projector import Projector, ProjectorOptions
from dataplane.pipelines.query_embedding import QueryEmbeddings
from dataplane.pipelines.rebuild import RebuildParts
from dataplane.pipelines.record import Recorder
from dataplane.pipelines.reindex import Reindexing, ReindexOptions
from dataplane.pipelines.rescore import RescoreParts, Rescoring
from dataplane.pipelines.retrieve import Retrieval, RetrieveParts
from dataplane.pipelines.search import SearchParts, SearchPipeline
from dataplane.pipelines.set_aside import SetAsideWrites
from dataplane.pipelines.settle import Settlement
from dataplane.pipelines.spaces import VectorSpace
from dataplane.pipelines.stages import ObserveStage
from dataplane.pipelines.tombstones import Tombstones
from dataplane.pipelines.update import UpdateParts, UpdatePipeline
from dataplane.pipelines.vouching import Vouching
from dataplane.pipelines.without_records import WithoutRecords
from dataplane.pipelines.write import WriteParts, WritePipeline
from dataplane.pipelines.write_or_queue import WriteOrQueue
from dataplane.ports import Clock, RecordStore
from dataplane.row_codec import pack_memory
from dataplane.server.maintenance_service import Maintenance
from dataplane.server.memory_service import Pipelines
from dataplane.server.queued import QueuedRequests
from dataplane.stores import Stores
from memplane.policy.snapshot import PolicySnapshot

FLUSH_OWN_S = 2.0
FLUSH_SERVER_S = 0.2
"""How long what an index took, one of our own or a server's, may wait for its flush. Until then searches score from the
record store what a server took. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What pipelines need beside the stores. `policy` gives the snapshot in force. `node_id` is this data plane's."""

    policy: Callable[[], PolicySnapshot | None]
    clock: Clock
    node_id: str
    observe_stage: ObserveStage = field(default=lambda _stage, _seconds: None)


@dataclass(frozen=True, slots=True)
class WireOptions:
    """How the work in the background goes. `projector` None: the defaults. `record_interval_s`: between log writes."""

    projector: ProjectorOptions | None = None
    record_interval_s: float = 0.2
    reindex: ReindexOptions = field(default_factory=ReindexOptions)


@dataclass(frozen=True, slots=True)
class Wired:
    """Everything that runs over the stores. `records` keep the cache in step. `consumer` None: there is no queue.

    `stores` are those given, guarded by `guards`. `counted` None: accesses are counted at once. `lineage` is kept by
    what `beacons_over` makes. `vouching` None: the cache does not hear of every forget, so nobody vouches for it.
    """

    stores: Stores
    guards: Guards
    records: RecordStore
    cache: OwingCache
    projectors: Projectors
    recorder: Recorder
    pipelines: Pipelines
    operations: OperationsPipeline
    maintenance: Maintenance
    consumer: QueueConsumer | None
    counted: CountedRecords | None
    followed: tuple[FollowedIndex, ...]
    lineage: Lineage
    without_records: WithoutRecords
    vouching: Vouching | None

    def background_failures(self) -> dict[str, int]:
        """What went wrong in the background since the start, by event."""
        return {
            "records_dropped": self.recorder.dropped,
            "records_not_written": self.recorder.failed,
            "queued_batches_put_off": self.consumer.failed_turns if self.consumer is not None else 0,
        }

    async def start(self, *, paused: bool) -> None:
        """Begins all work in the background; `paused`: changes are not projected for now."""
        self.cache.start()
        await self.projectors.start(paused=paused)
        self.recorder.start()
        if self.counted is not None:
            self.counted.start()
        if self.vouching is not None:
            self.vouching.start()
        await self.maintenance.reindexing.start()
        if self.consumer is not None:
            self.consumer.start()

    async def stop(self) -> None:
        """Ends it in order: nothing new is taken on, what is under way is finished or left to others."""
        if self.consumer is not None:
            await self.consumer.stop()
        if self.vouching is not None:
            await self.vouching.stop()
        await self.maintenance.reindexing.stop()
        await self.recorder.stop()
        if self.counted is not None:
            await self.counted.stop()
        await self.projectors.stop()
        await self.records.close()
        await self.cache.close()
        await self.guards.close()


@dataclass(frozen=True, slots=True)
class _Base:
    """What nearly everything is built over."""

    stores: Stores
    around: Surroundings
    records: RecordStore
    cache: OwingCache
    projectors: Projectors
    recorder: Recorder
    lineage: Lineage
    guard: Guard


def wire(stores: Stores, around: Surroundings, options: WireOptions | None = None) -> Wired:
    """Builds it all; nothing runs yet."""
    options = options or WireOptions()
    owner, lineage = f"{around.node_id}/{secrets.token_hex(8)}", Lineage()
    guards = Guards(around.policy)
    stores = guards.guard(stores)
    cache = OwingCache(stores.cache)
    records = cached_records(stores.records, cache)
    if stores.hot_memories:
        records = hot_memories(records, cache, lambda: lineage.name)
    counted = CountedRecords(records, stores.counters) if stores.counters is not None else None
    followed = [_followed_vectors(stores, space, around) for space in stores.spaces.all] + [
        _followed_texts(stores, around)
    ]
    projectors = _projectors(stores, records, followed, around, options.projector or ProjectorOptions(owner=owner))
    base = _Base(
        stores,
        around,
        records,
        cache,
        projectors,
        Recorder(counted.records if counted else records, options.record_interval_s),
        lineage,
        Guard(),
    )
    write, retrieval = _write(base), _retrieval(base)
    without_records = WithoutRecords(retrieval, stores.spaces, stores.texts, projectors, Tombstones(cache))
    return Wired(
        stores=stores,
        guards=guards,
        records=records,
        cache=cache,
        projectors=projectors,
        recorder=base.recorder,
        pipelines=_pipelines(base, write, _search(base, retrieval, without_records)),
        operations=OperationsPipeline(records, stores.queue),
        maintenance=_maintenance(base, followed, options.reindex),
        consumer=_consumer(base, write, owner),
        counted=counted,
        followed=tuple(followed),
        lineage=lineage,
        without_records=without_records,
        vouching=Vouching(records, cache) if stores.cache_hears_all else None,
    )


def beacons_over(wired: Wired, node_id: str, witness: Witness, options: BeaconOptions | None = None) -> Beacons:
    """What notices wiped indexes and a restored record store; `node_id` is this data plane's."""
    maintenance, projectors = wired.maintenance, {each.target: each for each in wired.projectors}
    options = options or BeaconOptions()
    care = CareParts(wired.records, maintenance.checks, maintenance.reindexing, node_id, options.repair_pause_s)
    cares = [IndexCare(care, index, projectors[index.name]) for index in wired.followed]
    mark = partial(secrets.randbelow, MARKS)
    parts = BeaconParts(wired.records, wired.cache, wired.projectors, wired.lineage, witness, mark, node_id)
    return Beacons(parts, cares, options)


def _followed_vectors(stores: Stores, space: VectorSpace, around: Surroundings) -> FollowedIndex:
    def entry(row: OutboxRow) -> IndexEntry:
        memory, snapshot = row.memory, around.policy()
        assert memory is not None
        partition = snapshot.policies.for_namespace(memory.namespace).partition if snapshot is not None else ""
        return IndexEntry(
            memory.memory_id,
            memory.version,
            memory.namespace,
            memory.pool,
            fields_of(memory),
            embedding=row.embedding,
            partition=partition,
            row=pack_memory(memory),
        )

    name = _target(f"vector_index:{space.model}", around, own=stores.own_vectors)
    return FollowedIndex(name, space.vectors, entry, space)


def _followed_texts(stores: Stores, around: Surroundings) -> FollowedIndex:
    def entry(row: OutboxRow) -> IndexEntry:
        memory = row.memory
        assert memory is not None
        words = tokens(parse_body(memory).content)
        return IndexEntry(
            memory.memory_id,
            memory.version,
            memory.namespace,
            memory.pool,
            fields_of(memory),
            tokens=words,
            row=pack_memory(memory),
        )

    return FollowedIndex(_target(f"text_index:{TOKENIZER}", around, own=stores.own_texts), stores.texts, entry)


def _target(name: str, around: Surroundings, *, own: bool) -> str:
    """The index's name in the outbox: an index in a process's folder is followed by that process alone."""
    return f"{name}@{around.node_id}" if own else name


def _projectors(
    stores: Stores,
    records: RecordStore,
    followed: Sequence[FollowedIndex],
    around: Surroundings,
    options: ProjectorOptions,
) -> Projectors:
    projections = [_projection(stores, records, index, around) for index in followed]
    return Projectors(records, [Projector(records, projection, options) for projection in projections], options)


def _projection(stores: Stores, records: RecordStore, index: FollowedIndex, around: Surroundings) -> Projection:
    space = index.space
    own = stores.own_texts if space is None else stores.own_vectors
    rescoring = None
    if space is not None and space.gate_model is not None:
        rescoring = Rescoring(RescoreParts(records, space.gate_model, around.policy, around.clock))
    return Projection(
        name="text_index" if space is None else "vector_index",
        target=index.name,
        index=index.index,
        entry_of=index.entry_of,
        embedder=None if space is None else space.embedder,
        rescoring=rescoring,
        own=own,
        flush_interval_s=FLUSH_OWN_S if own else FLUSH_SERVER_S,
        counts=lambda: space is None or space is stores.spaces.current,
    )


def _write(base: _Base) -> WritePipeline:
    parts = WriteParts(
        store=base.records,
        spaces=base.stores.spaces,
        projectors=base.projectors,
        settlement=Settlement(base.records, Neighbours(base.records, base.projectors), shipped_pair_model()),
        guard=base.guard,
        clock=base.around.clock,
        new_id=Ids(base.around.clock).memory_id,
    )
    return WritePipeline(parts)


def _pipelines(base: _Base, write: WritePipeline, search: SearchPipeline) -> Pipelines:
    records, spaces, projectors, clock = base.records, base.stores.spaces, base.projectors, base.around.clock
    enqueue = _enqueue(base, write)
    return Pipelines(
        write=write,
        search=search,
        context=ContextPipeline(search, spaces),
        get=GetPipeline(records, clock),
        list=ListPipeline(records, clock),
        update=UpdatePipeline(UpdateParts(records, spaces, projectors, clock, base.guard)),
        forget=ForgetPipeline(ForgetParts(records, projectors, base.cache.owes, clock)),
        enqueue=enqueue,
        write_or_queue=WriteOrQueue(write, enqueue, Ids(clock).request_id),
    )


def _retrieval(base: _Base) -> Retrieval:
    embeddings = QueryEmbeddings(base.cache)
    observe = base.around.observe_stage
    return Retrieval(RetrieveParts(base.stores.texts, embeddings, base.projectors, base.lineage, observe))


def _search(base: _Base, retrieval: Retrieval, without_records: WithoutRecords) -> SearchPipeline:
    clock, observe = base.around.clock, base.around.observe_stage
    return SearchPipeline(
        SearchParts(
            store=base.records,
            answers=AnswerCache(base.cache, base.records, clock, base.lineage, hears_all=base.stores.cache_hears_all),
            spaces=base.stores.spaces,
            retrieval=retrieval,
            without_records=without_records,
            recorder=base.recorder,
            clock=clock,
            new_search_id=Ids(clock).search_id,
            observe_stage=observe,
        )
    )


def _enqueue(base: _Base, write: WritePipeline) -> EnqueuePipeline | None:
    queue, clock = base.stores.queue, base.around.clock
    if queue is None:
        return None
    return EnqueuePipeline(EnqueueParts(queue, base.records, write, _form(base), clock, Ids(clock).request_id))


def _consumer(base: _Base, write: WritePipeline, owner: str) -> QueueConsumer | None:
    queue, around = base.stores.queue, base.around
    if queue is None:
        return None
    parts = ApplyParts(queue, base.records, write, _form(base), around.policy, around.clock)
    return QueueConsumer(parts, ApplyOptions(owner))


def _form(base: _Base) -> QueuedRequests:
    return QueuedRequests(lambda: base.stores.spaces.current.embedder.dimension)


def _maintenance(base: _Base, followed: Sequence[FollowedIndex], options: ReindexOptions) -> Maintenance:
    indexes = FollowedIndexes(followed, base.stores.spaces)
    checks = CheckIndexes(base.records, indexes, secrets.SystemRandom().random)
    parts = RebuildParts(base.records, checks, base.stores.spaces, base.around.clock)
    reindexing = Reindexing(parts, indexes, lambda: secrets.token_hex(16), options)
    return Maintenance(checks, reindexing, DeadLetters(base.records), SetAsideWrites(base.stores.queue))
