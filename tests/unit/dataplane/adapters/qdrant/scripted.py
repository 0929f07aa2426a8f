"""A server that says what a test wants said: the state no peer over a real engine can be brought to."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
from google.protobuf.message import Message
from qdrant_client import grpc as wire

Answer = Callable[[Any], Message | grpc.StatusCode] | grpc.StatusCode
SECRET = "text of the server that must not get out"


def collection(**changes: Any) -> wire.GetCollectionInfoResponse:
    """A healthy collection of dimension 8, and what differs: `status`, `size`, `distance`, `replicas`, `fields`."""
    fields = changes.get("fields", ("namespace", "shared", "terms", "numbers.create_time", "numbers.event_time"))
    vectors = wire.VectorParams(size=changes.get("size", 8), distance=changes.get("distance", wire.Distance.Cosine))
    return wire.GetCollectionInfoResponse(
        result=wire.CollectionInfo(
            status=changes.get("status", wire.CollectionStatus.Green),
            optimizer_status=wire.OptimizerStatus(ok=True),
            points_count=1,
            payload_schema={name: wire.PayloadSchemaInfo(data_type=wire.PayloadSchemaType.Keyword) for name in fields},
            config=wire.CollectionConfig(
                params=wire.CollectionParams(
                    vectors_config=wire.VectorsConfig(params=vectors), replication_factor=changes.get("replicas", 1)
                ),
                hnsw_config=wire.HnswConfigDiff(m=16, ef_construct=200, full_scan_threshold=10_000),
                optimizer_config=wire.OptimizersConfigDiff(
                    deleted_threshold=0.2, vacuum_min_vector_number=1, default_segment_number=1, flush_interval_sec=5
                ),
                wal_config=wire.WalConfigDiff(wal_capacity_mb=1, wal_segments_ahead=0),
            ),
        )
    )


def healthy() -> dict[str, Answer]:
    """Answers with which an index opens."""
    return {
        "HealthCheck": lambda _: wire.HealthCheckReply(version="1.17.0"),
        "CollectionExists": lambda _: wire.CollectionExistsResponse(result=wire.CollectionExists(exists=True)),
        "qdrant.Collections/Get": lambda _: collection(),
        "List": lambda _: wire.ListCollectionsResponse(),
        "ListAliases": lambda _: wire.ListAliasesResponse(),
        "Upsert": lambda _: wire.PointsOperationResponse(result=wire.UpdateResult(status=wire.UpdateStatus.Completed)),
        "qdrant.Points/Delete": lambda _: wire.PointsOperationResponse(
            result=wire.UpdateResult(status=wire.UpdateStatus.Completed)
        ),
        "qdrant.Points/Get": lambda _: wire.GetResponse(),
        "CreateFieldIndex": lambda _: wire.PointsOperationResponse(
            result=wire.UpdateResult(status=wire.UpdateStatus.Completed)
        ),
        "Count": lambda _: wire.CountResponse(result=wire.CountResult(count=1)),
    }


@asynccontextmanager
async def scripted_server(
    answers: Mapping[str, Answer], credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[str]:
    """Its URL. `answers` are read anew for each call, by `service/method` or by method; with credentials over TLS."""

    class Scripted(grpc.aio.ServerInterceptor):
        async def intercept_service(
            self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
        ) -> Any:
            generated = await continuation(handler_call_details)
            method = handler_call_details.method.lstrip("/")

            async def answer(request: Any, context: Any) -> Any:
                said = answers.get(method, answers.get(method.partition("/")[2], grpc.StatusCode.UNIMPLEMENTED))
                response = said if isinstance(said, grpc.StatusCode) else said(request)
                if isinstance(response, grpc.StatusCode):
                    await context.abort(response, SECRET)
                return response

            return grpc.unary_unary_rpc_method_handler(
                answer, generated.request_deserializer, generated.response_serializer
            )

    server = grpc.aio.server(interceptors=[Scripted()])
    wire.add_CollectionsServicer_to_server(wire.CollectionsServicer(), server)  # type: ignore[no-untyped-call]
    wire.add_PointsServicer_to_server(wire.PointsServicer(), server)  # type: ignore[no-untyped-call]
    wire.add_QdrantServicer_to_server(wire.QdrantServicer(), server)  # type: ignore[no-untyped-call]
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    await server.start()
    yield f"{'https' if credentials else 'http'}://127.0.0.1:{port}"
    await server.stop(None)
