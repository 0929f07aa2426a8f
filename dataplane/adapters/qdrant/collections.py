"""How a collection is made, and what can be wrong with one that is there."""

from collections.abc import Iterator
from functools import partial

from qdrant_client import AsyncQdrantClient, models

from dataplane.adapters.payload_filters import RANGE_FIELDS
from dataplane.adapters.qdrant.calls import BACKEND, CollectionMissing, Connection, RequestRefused
from dataplane.adapters.qdrant.filters import MEMORIES
from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.errors import BackendUnavailable, Misconfigured
from dataplane.ports.backend import Problem

MINIMUM_VERSION = (1, 16)
"""The first with conditional upserts (an older version never replaces a newer one) and collection metadata. Older ones
take the condition without a word and do not heed it."""

FULL_SCAN_KB = 80_000
"""Filtered down to fewer kilobytes of vectors, a search compares them all. 25,000 of 384 dimensions took 4 ms, by the
graph 22 ms and less exactly; 50,000 took 4.4 ms, by the graph 0.3 ms with recall@10 of .87 (Edge, 2 busy cores, 100,000
vectors, ef 64, embeddings of real texts, 2026-11). Qdrant's default is 10,000."""

FIELDS: dict[str, models.KeywordIndexParams | models.FloatIndexParams] = {
    "namespace": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "shared": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    "terms": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    **{path: models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False) for path in RANGE_FIELDS},
}
"""Payload fields with an index. Only the tenant's gets graph links of its own: every other one more makes building the
graph dearer (8 times for all of them, Edge 2026-11)."""


_COMES_BACK = "the next write makes it anew, and it is filled from the record store"


class Collections:
    """The collections of one embedding model as these options want them."""

    def __init__(self, connection: Connection, options: QdrantOptions, names: CollectionNames) -> None:
        self._connection = connection
        self._options = options
        self._names = names

    async def make(self, partition: str, deadline_s: float) -> None:
        """Makes the collection of a partition, and whatever index it lacks. Idempotent; several may do it at once."""
        name = self._names.of(partition)
        if not await self._exists(name, deadline_s):
            await self._create(name, partition, deadline_s)
        info = await self._info(name, deadline_s)
        problem = self._shape_problem(name, info)
        if problem is not None:
            raise Misconfigured(BACKEND, problem)
        await self._index_fields(name, info, deadline_s)

    async def drop(self, name: str, deadline_s: float) -> None:
        """Removes a collection; one that is not there is fine."""
        await self._connection.call(lambda client: client.delete_collection(name), deadline_s)

    async def problems(self, active: str, deadline_s: float) -> list[Problem]:
        """What is wrong with the common collection; `active` is the one that the alias names, "" when there is none.

        Indexes of payload fields that it lacks, since whoever made it was stopped half way, are made first.
        """
        name = self._names.common
        try:
            info = await self._info(name, deadline_s)
            if await self._index_fields(name, info, deadline_s):
                info = await self._info(name, deadline_s)
        except CollectionMissing:
            return [Problem("COLLECTION_MISSING", f"the collection {name} is gone; {_COMES_BACK}")]
        problems = list(self._info_problems(name, info))
        if not active and await self._holds_memories(name, deadline_s):
            text = f"no alias {self._names.alias} names an active index though {name} holds memories; Reindex makes it"
            problems.append(Problem("ALIAS_MISSING", text))
        return problems

    async def metadata(self, name: str, deadline_s: float) -> dict[str, object]:
        """What we wrote on a collection when it was made; empty for one that is not ours. Raises CollectionMissing."""
        return (await self._info(name, deadline_s)).config.metadata or {}

    async def _index_fields(self, name: str, info: models.CollectionInfo, deadline_s: float) -> bool:
        """Makes the indexes of payload fields that a collection of the right shape lacks; whether there were any."""
        missing = FIELDS.keys() - info.payload_schema.keys()
        if self._shape_problem(name, info) is not None:
            return False
        for field in missing:
            await self._connection.call(partial(_index_field, name, field), deadline_s)
        return bool(missing)

    async def _holds_memories(self, name: str, deadline_s: float) -> bool:
        counted = await self._connection.call(lambda client: client.count(name, MEMORIES, exact=True), deadline_s)
        return counted.count > 0

    async def _exists(self, name: str, deadline_s: float) -> bool:
        return await self._connection.call(lambda client: client.collection_exists(name), deadline_s)

    async def _info(self, name: str, deadline_s: float) -> models.CollectionInfo:
        return await self._connection.call(lambda client: client.get_collection(name), deadline_s)

    async def _create(self, name: str, partition: str, deadline_s: float) -> None:
        options = self._options
        try:
            await self._connection.call(
                lambda client: client.create_collection(
                    name,
                    vectors_config=models.VectorParams(
                        size=self._names.dimension, distance=models.Distance.COSINE, on_disk=options.on_disk
                    ),
                    shard_number=options.shards,
                    replication_factor=options.replicas,
                    write_consistency_factor=options.write_consistency_factor,
                    on_disk_payload=True,
                    hnsw_config=models.HnswConfigDiff(
                        m=options.hnsw_m,
                        ef_construct=options.hnsw_ef_construct,
                        full_scan_threshold=FULL_SCAN_KB,
                        on_disk=options.on_disk,
                    ),
                    quantization_config=_quantisation(options),
                    # Filters may name any metadata key, so not every one has an index.
                    strict_mode_config=models.StrictModeConfig(
                        unindexed_filtering_retrieve=True, unindexed_filtering_update=True
                    ),
                    metadata={"model": self._names.model, "dimension": self._names.dimension, "partition": partition},
                ),
                deadline_s,
            )
        except BackendUnavailable as error:
            if await self._exists(name, deadline_s):
                return  # another data plane was faster
            if isinstance(error, RequestRefused):
                text = f"refuses to make the collection {name}; look at its log, and at shards and replicas"
                raise Misconfigured(BACKEND, text) from error
            raise

    def _shape_problem(self, name: str, info: models.CollectionInfo) -> str | None:
        vectors, dimension = info.config.params.vectors, self._names.dimension
        if not isinstance(vectors, models.VectorParams):
            return f"the collection {name} was not made by this version; remove it, then Reindex fills it again"
        if vectors.size != dimension:
            return (
                f"the collection {name} holds vectors of dimension {vectors.size}, the embedding model makes "
                f"{dimension}; remove the collection or set another prefix, then Reindex"
            )
        if vectors.distance is not models.Distance.COSINE:
            return f"the collection {name} compares by {vectors.distance.value}, not Cosine; remove it, then Reindex"
        return None

    def _info_problems(self, name: str, info: models.CollectionInfo) -> Iterator[Problem]:
        shape = self._shape_problem(name, info)
        if shape is not None:
            yield Problem("COLLECTION_SHAPE", shape)
        if info.status is not models.CollectionStatus.GREEN:
            yield Problem("COLLECTION_STATUS", f"the collection {name} is {info.status.value}: {_STATUS[info.status]}")
        missing = sorted(FIELDS.keys() - info.payload_schema.keys())
        if missing:
            text = f"the collection {name} has no payload index on {', '.join(missing)}, though it was asked for"
            yield Problem("PAYLOAD_INDEX_MISSING", text)
        factor = info.config.params.replication_factor or 1
        if factor < self._options.replicas:
            text = f"the collection {name} keeps {factor} copies of each shard, {self._options.replicas} are configured"
            yield Problem("TOO_FEW_REPLICAS", f"{text}; raise its replication_factor in Qdrant")


_STATUS = {
    models.CollectionStatus.YELLOW: "it is being optimised, searches may be slower; wait",
    models.CollectionStatus.GREY: "optimisations wait for a write after a restart; any write resumes them",
    models.CollectionStatus.RED: "some operations failed; see Qdrant's log",
}


def version_problem(version: str) -> str | None:
    """What to do about a server of this version; None when it will do."""
    numbers = version.split(".")[:2]
    if all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= MINIMUM_VERSION:
        return None
    least = ".".join(map(str, MINIMUM_VERSION))
    return f"the server is Qdrant {version}; {least} or newer is needed"


async def _index_field(name: str, field: str, client: AsyncQdrantClient) -> object:
    return await client.create_payload_index(name, field, field_schema=FIELDS[field])


def _quantisation(options: QdrantOptions) -> models.ScalarQuantization | models.BinaryQuantization | None:
    if options.quantisation == "scalar":
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=scalar)
    if options.quantisation == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None
