"""The services of the peer. Every method it does not have answers UNIMPLEMENTED, as generated."""

# ruff: noqa: N802 - gRPC names the methods

from collections.abc import Callable, Sequence
from typing import Any

from qdrant_client import grpc
from qdrant_edge import CountRequest, EdgeShard, Query, QueryRequest, ScrollRequest, UpdateMode, UpdateOperation

from tests.peers.qdrant.catalogue import BadInput, Catalogue, Collection
from tests.peers.qdrant.edge_types import (
    FULL_SCAN_THRESHOLD_KB,
    NotTranslated,
    filter_of,
    given_filter,
    id_of,
    index_of,
    payload_selector_of,
    point_of,
    retrieved,
    scored,
    search_params_of,
    vector_of,
    vector_selector_of,
    wire_id,
)

Context = Any
_MODES = {
    grpc.UpdateMode.Upsert: UpdateMode.Upsert,
    grpc.UpdateMode.InsertOnly: UpdateMode.InsertOnly,
    grpc.UpdateMode.UpdateOnly: UpdateMode.UpdateOnly,
}
_SCHEMA_TYPES = {
    grpc.FieldType.FieldTypeKeyword: grpc.PayloadSchemaType.Keyword,
    grpc.FieldType.FieldTypeFloat: grpc.PayloadSchemaType.Float,
    grpc.FieldType.FieldTypeInteger: grpc.PayloadSchemaType.Integer,
}


class CollectionsService(grpc.CollectionsServicer):
    """Collections and aliases."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def Create(self, request: grpc.CreateCollection, context: Context) -> grpc.CollectionOperationResponse:
        self._catalogue.create(request)
        return grpc.CollectionOperationResponse(result=True)

    def Delete(self, request: grpc.DeleteCollection, context: Context) -> grpc.CollectionOperationResponse:
        return grpc.CollectionOperationResponse(result=self._catalogue.delete(request.collection_name))

    def Get(self, request: grpc.GetCollectionInfoRequest, context: Context) -> grpc.GetCollectionInfoResponse:
        collection = self._catalogue.get(request.collection_name)
        with collection.lock:
            return grpc.GetCollectionInfoResponse(result=_info(collection))

    def List(self, request: grpc.ListCollectionsRequest, context: Context) -> grpc.ListCollectionsResponse:
        found = [grpc.CollectionDescription(name=name) for name in self._catalogue.names()]
        return grpc.ListCollectionsResponse(collections=found)

    def CollectionExists(
        self, request: grpc.CollectionExistsRequest, context: Context
    ) -> grpc.CollectionExistsResponse:
        exists = request.collection_name in {*self._catalogue.names(), *self._catalogue.aliases()}
        return grpc.CollectionExistsResponse(result=grpc.CollectionExists(exists=exists))

    def UpdateAliases(self, request: grpc.ChangeAliases, context: Context) -> grpc.CollectionOperationResponse:
        self._catalogue.change_aliases(list(request.actions))
        return grpc.CollectionOperationResponse(result=True)

    def ListAliases(self, request: grpc.ListAliasesRequest, context: Context) -> grpc.ListAliasesResponse:
        found = [
            grpc.AliasDescription(alias_name=alias, collection_name=name)
            for alias, name in self._catalogue.aliases().items()
        ]
        return grpc.ListAliasesResponse(aliases=found)


class PointsService(grpc.PointsServicer):
    """Points. Writes are applied when the answer goes out, whether it was waited for or not."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def Upsert(self, request: grpc.UpsertPoints, context: Context) -> grpc.PointsOperationResponse:
        collection = self._catalogue.get(request.collection_name)
        if not request.points:
            raise BadInput("Wrong input: Empty update request")
        for point in request.points:
            _check_dimension(collection, vector_of(point.vectors))
        operation = UpdateOperation.upsert_points(
            [point_of(point) for point in request.points],
            given_filter(request, "update_filter"),
            _MODES[request.update_mode],
        )
        return _applied(collection, operation)

    def Delete(self, request: grpc.DeletePoints, context: Context) -> grpc.PointsOperationResponse:
        collection = self._catalogue.get(request.collection_name)
        if request.points.WhichOneof("points_selector_one_of") == "filter":
            return _applied(collection, UpdateOperation.delete_points_by_filter(filter_of(request.points.filter)))
        ids = [id_of(point_id) for point_id in request.points.points.ids]
        return _applied(collection, UpdateOperation.delete_points(ids))

    def Get(self, request: grpc.GetPoints, context: Context) -> grpc.GetResponse:
        ids = [id_of(point_id) for point_id in request.ids]
        payload, vectors = payload_selector_of(request), vector_selector_of(request)
        found = self._ask(request.collection_name, lambda shard: shard.retrieve(ids, payload, vectors))
        return grpc.GetResponse(result=[retrieved(record) for record in found])

    def Scroll(self, request: grpc.ScrollPoints, context: Context) -> grpc.ScrollResponse:
        if request.HasField("order_by"):
            raise NotTranslated("order_by")
        asked = ScrollRequest(
            offset=id_of(request.offset) if request.HasField("offset") else None,
            limit=request.limit if request.HasField("limit") else 10,
            filter=given_filter(request, "filter"),
            with_payload=payload_selector_of(request),
            with_vector=vector_selector_of(request),
        )
        found, following = self._ask(request.collection_name, lambda shard: shard.scroll(asked))
        offset = wire_id(following) if following is not None else None
        return grpc.ScrollResponse(result=[retrieved(record) for record in found], next_page_offset=offset)

    def Count(self, request: grpc.CountPoints, context: Context) -> grpc.CountResponse:
        asked = CountRequest(exact=True, filter=given_filter(request, "filter"))
        count = self._ask(request.collection_name, lambda shard: shard.count(asked))
        return grpc.CountResponse(result=grpc.CountResult(count=count))

    def Query(self, request: grpc.QueryPoints, context: Context) -> grpc.QueryResponse:
        if request.query.WhichOneof("variant") != "nearest" or request.query.nearest.WhichOneof("variant") != "dense":
            raise NotTranslated("a query that is not by one dense vector")
        if request.prefetch or request.HasField("lookup_from") or request.using:
            raise NotTranslated("prefetch, lookup_from and using")
        vector = list(request.query.nearest.dense.data)
        _check_dimension(self._catalogue.get(request.collection_name), vector)
        asked = QueryRequest(
            limit=request.limit if request.HasField("limit") else 10,
            offset=request.offset,
            query=Query.Nearest(vector),
            filter=given_filter(request, "filter"),
            params=search_params_of(request),
            score_threshold=request.score_threshold if request.HasField("score_threshold") else None,
            with_payload=payload_selector_of(request),
            with_vector=vector_selector_of(request),
        )
        found = self._ask(request.collection_name, lambda shard: shard.query(asked))
        return grpc.QueryResponse(result=[scored(point) for point in found])

    def CreateFieldIndex(
        self, request: grpc.CreateFieldIndexCollection, context: Context
    ) -> grpc.PointsOperationResponse:
        collection = self._catalogue.get(request.collection_name)
        if not request.HasField("field_index_params"):
            raise NotTranslated("a payload index without parameters")
        index = index_of(request.field_index_params)
        response = _applied(collection, UpdateOperation.create_field_index(request.field_name, index))
        info = grpc.PayloadSchemaInfo(data_type=_SCHEMA_TYPES[request.field_type], params=request.field_index_params)
        self._catalogue.save_schema(collection, request.field_name, info)
        return response

    def _ask(self, name: str, work: Callable[[EdgeShard], Any]) -> Any:
        collection = self._catalogue.get(name)
        with collection.lock:
            return work(collection.shard)


class RootService(grpc.QdrantServicer):
    """Health and version."""

    def __init__(self, version: str) -> None:
        self._version = version

    def HealthCheck(self, request: grpc.HealthCheckRequest, context: Context) -> grpc.HealthCheckReply:
        return grpc.HealthCheckReply(title="qdrant - vector search engine", version=self._version)


def _applied(collection: Collection, operation: UpdateOperation) -> grpc.PointsOperationResponse:
    with collection.lock:
        collection.shard.update(operation)
    return grpc.PointsOperationResponse(result=grpc.UpdateResult(operation_id=0, status=grpc.UpdateStatus.Completed))


def _check_dimension(collection: Collection, vector: Sequence[float]) -> None:
    if len(vector) != collection.dimension:
        raise BadInput(f"Wrong input: Vector dimension error: expected dim: {collection.dimension}, got {len(vector)}")


def _info(collection: Collection) -> grpc.CollectionInfo:
    shard = collection.shard.info()
    return grpc.CollectionInfo(
        status=grpc.CollectionStatus.Green,
        optimizer_status=grpc.OptimizerStatus(ok=True),
        segments_count=shard.segments_count,
        points_count=shard.points_count,
        indexed_vectors_count=shard.indexed_vectors_count,
        payload_schema=collection.schema,
        config=_config(collection.made),
    )


def _config(made: grpc.CreateCollection) -> grpc.CollectionConfig:
    """How a collection was made, over the server's defaults."""
    hnsw = grpc.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=FULL_SCAN_THRESHOLD_KB)
    hnsw.MergeFrom(made.hnsw_config)
    return grpc.CollectionConfig(
        params=grpc.CollectionParams(
            shard_number=made.shard_number or 1,
            vectors_config=made.vectors_config,
            replication_factor=made.replication_factor or 1,
            write_consistency_factor=made.write_consistency_factor or 1,
        ),
        hnsw_config=hnsw,
        optimizer_config=grpc.OptimizersConfigDiff(
            deleted_threshold=0.2, vacuum_min_vector_number=1000, default_segment_number=0, flush_interval_sec=5
        ),
        wal_config=grpc.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
        quantization_config=made.quantization_config if made.HasField("quantization_config") else None,
        strict_mode_config=made.strict_mode_config if made.HasField("strict_mode_config") else None,
        metadata=made.metadata,
    )
