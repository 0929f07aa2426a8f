"""Messages of the wire as Edge's classes, and back. What is not translated raises `NotTranslated`."""

import uuid
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message
from qdrant_client import grpc
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_edge import (
    AcornSearchParams,
    Distance,
    EdgeConfig,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    FloatIndexParams,
    HasIdCondition,
    HasVectorCondition,
    HnswIndexConfig,
    IntegerIndexParams,
    IsEmptyCondition,
    IsNullCondition,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    NestedCondition,
    Point,
    QuantizationSearchParams,
    RangeFloat,
    Record,
    ScoredPoint,
    SearchParams,
)

Condition = (
    FieldCondition | IsEmptyCondition | IsNullCondition | HasIdCondition | HasVectorCondition | NestedCondition | Filter
)
Reading = grpc.GetPoints | grpc.ScrollPoints | grpc.QueryPoints
EdgeId = int | uuid.UUID | str
FULL_SCAN_THRESHOLD_KB = 10_000
_DISTANCES = {
    grpc.Distance.Cosine: Distance.Cosine,
    grpc.Distance.Dot: Distance.Dot,
    grpc.Distance.Euclid: Distance.Euclid,
    grpc.Distance.Manhattan: Distance.Manhattan,
}


class NotTranslated(Exception):
    """The peer does not do this; the text names it."""


def config_of(request: grpc.CreateCollection) -> EdgeConfig:
    """The shard of a collection, without quantisation: that changes speed and memory, which the peer does not show."""
    if request.vectors_config.WhichOneof("config") != "params" or request.HasField("sparse_vectors_config"):
        raise NotTranslated("named and sparse vectors")
    params, hnsw = request.vectors_config.params, request.hnsw_config
    return EdgeConfig(
        vectors=EdgeVectorParams(size=params.size, distance=_DISTANCES[params.distance]),
        hnsw_config=HnswIndexConfig(
            hnsw.m if hnsw.HasField("m") else 16,
            hnsw.ef_construct if hnsw.HasField("ef_construct") else 100,
            hnsw.full_scan_threshold if hnsw.HasField("full_scan_threshold") else FULL_SCAN_THRESHOLD_KB,
        ),
    )


def index_of(params: grpc.PayloadIndexParams) -> KeywordIndexParams | FloatIndexParams | IntegerIndexParams:
    """The index of a payload field."""
    name = params.WhichOneof("index_params")
    if name == "keyword_index_params":
        keyword = params.keyword_index_params
        return KeywordIndexParams(is_tenant=_given(keyword, "is_tenant"), enable_hnsw=_given(keyword, "enable_hnsw"))
    if name == "float_index_params":
        return FloatIndexParams(enable_hnsw=_given(params.float_index_params, "enable_hnsw"))
    if name == "integer_index_params":
        return IntegerIndexParams(enable_hnsw=_given(params.integer_index_params, "enable_hnsw"))
    raise NotTranslated(f"a payload index by {name}")


def filter_of(request: grpc.Filter) -> Filter:
    """The filter; as on the server, an empty list of conditions is none at all."""
    if request.HasField("min_should"):
        raise NotTranslated("min_should")
    return Filter(
        must=_conditions(request.must), should=_conditions(request.should), must_not=_conditions(request.must_not)
    )


def given_filter(request: Message, field: str) -> Filter | None:
    """The filter in a field of a request; None when it is absent."""
    return filter_of(getattr(request, field)) if request.HasField(field) else None


def search_params_of(request: grpc.QueryPoints) -> SearchParams | None:
    """How to search."""
    if not request.HasField("params"):
        return None
    params = request.params
    quantization = params.quantization
    return SearchParams(
        hnsw_ef=_given(params, "hnsw_ef"),
        exact=params.exact,
        quantization=QuantizationSearchParams(
            ignore=quantization.ignore,
            rescore=_given(quantization, "rescore"),
            oversampling=_given(quantization, "oversampling"),
        ),
        acorn=AcornSearchParams(params.acorn.enable, _given(params.acorn, "max_selectivity")),
    )


def payload_selector_of(request: Reading) -> bool | list[str]:
    """Which payload comes with points; by default none, as over gRPC."""
    selector = request.with_payload
    name = selector.WhichOneof("selector_options")
    if name == "exclude":
        raise NotTranslated("payload but for some keys")
    return list(selector.include.fields) if name == "include" else bool(selector.enable)


def vector_selector_of(request: Reading) -> bool:
    """Whether vectors come with points."""
    if request.with_vectors.WhichOneof("selector_options") == "include":
        raise NotTranslated("named vectors")
    return bool(request.with_vectors.enable)


def point_of(point: grpc.PointStruct) -> Point:
    """A point to write."""
    return Point(id_of(point.id), list(vector_of(point.vectors)), GrpcToRest.convert_payload(point.payload))


def vector_of(vectors: grpc.Vectors) -> Sequence[float]:
    """The one dense vector of a point."""
    if vectors.WhichOneof("vectors_options") != "vector":
        raise NotTranslated("named vectors")
    if vectors.vector.WhichOneof("vector") == "dense":
        return vectors.vector.dense.data
    if vectors.vector.WhichOneof("vector") is None:
        return vectors.vector.data
    raise NotTranslated("sparse and multi-vectors")


def id_of(point_id: grpc.PointId) -> EdgeId:
    """An id for Edge."""
    return point_id.uuid if point_id.WhichOneof("point_id_options") == "uuid" else point_id.num


def wire_id(point_id: EdgeId) -> grpc.PointId:
    """An id for the wire."""
    return grpc.PointId(num=point_id) if isinstance(point_id, int) else grpc.PointId(uuid=str(point_id))


def retrieved(record: Record) -> grpc.RetrievedPoint:
    """A point as Scroll and Get answer it."""
    return grpc.RetrievedPoint(
        id=wire_id(record.id),
        payload=RestToGrpc.convert_payload(record.payload or {}),
        vectors=_wire_vector(record.vector),
    )


def scored(point: ScoredPoint) -> grpc.ScoredPoint:
    """A point as Query answers it."""
    return grpc.ScoredPoint(
        id=wire_id(point.id),
        payload=RestToGrpc.convert_payload(point.payload or {}),
        score=point.score,
        version=point.version,
        vectors=_wire_vector(point.vector),
    )


def _wire_vector(vector: Any) -> grpc.VectorsOutput | None:
    return RestToGrpc.convert_vector_struct_output(vector) if vector is not None else None


def _conditions(conditions: Sequence[grpc.Condition]) -> list[Condition] | None:
    return [_condition(condition) for condition in conditions] or None


def _condition(condition: grpc.Condition) -> Condition:
    name = condition.WhichOneof("condition_one_of")
    if name == "filter":
        return filter_of(condition.filter)
    if name == "has_id":
        return HasIdCondition({id_of(each) for each in condition.has_id.has_id})
    if name == "field":
        return _field(condition.field)
    raise NotTranslated(f"a condition by {name}")


def _field(field: grpc.FieldCondition) -> FieldCondition:
    if field.HasField("match"):
        return FieldCondition(field.key, match=_match(field.match))
    if field.HasField("range"):
        bounds = {name: getattr(field.range, name) for name in ("lt", "lte", "gt", "gte") if field.range.HasField(name)}
        return FieldCondition(field.key, range=RangeFloat(**bounds))
    raise NotTranslated("a field condition that is neither match nor range")


def _match(match: grpc.Match) -> MatchValue | MatchAny:
    name = match.WhichOneof("match_value")
    if name in {"keyword", "integer", "boolean"}:
        return MatchValue(getattr(match, name))
    if name == "keywords":
        return MatchAny(list(match.keywords.strings))
    raise NotTranslated(f"match by {name}")


def _given(message: Message, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None
