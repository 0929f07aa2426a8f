"""Serves the peer on 127.0.0.1: `python -m tests.peers.qdrant.server FOLDER PORT VERSION [API_KEY]`."""

import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from qdrant_client import grpc as wire

from tests.peers.qdrant.catalogue import AlreadyExists, BadInput, Catalogue, NotFound
from tests.peers.qdrant.edge_types import NotTranslated
from tests.peers.qdrant.services import CollectionsService, PointsService, RootService

CODES = {
    NotFound: grpc.StatusCode.NOT_FOUND,
    AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    BadInput: grpc.StatusCode.INVALID_ARGUMENT,
    NotTranslated: grpc.StatusCode.UNIMPLEMENTED,
}


class Gate(grpc.ServerInterceptor):
    """Asks for the API key and answers errors with a server's codes."""

    def __init__(self, api_key: str) -> None:
        self._api_key = api_key

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Wraps the method's handler."""
        handler = continuation(details)
        if handler is None:
            return None
        given = dict(details.invocation_metadata).get("api-key", "")

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if self._api_key and given != self._api_key:
                context.abort(
                    grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key or an Authorization bearer token"
                )
            try:
                return handler.unary_unary(request, context)
            except tuple(CODES) as error:
                context.abort(CODES[type(error)], str(error))

        return grpc.unary_unary_rpc_method_handler(
            answer, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )


def main(folder: Path, port: int, version: str, api_key: str = "") -> None:
    """Serves until SIGTERM."""
    catalogue = Catalogue(folder)
    # A second server on the port must fail, not share it.
    options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(8), interceptors=[Gate(api_key)], options=options)
    wire.add_CollectionsServicer_to_server(CollectionsService(catalogue), server)  # type: ignore[no-untyped-call]  # generated
    wire.add_PointsServicer_to_server(PointsService(catalogue), server)  # type: ignore[no-untyped-call]  # generated
    wire.add_QdrantServicer_to_server(RootService(version), server)  # type: ignore[no-untyped-call]  # generated
    server.add_insecure_port(f"127.0.0.1:{port}")
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server.start()
    stopped.wait()
    server.stop(grace=1.0).wait()
    catalogue.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
