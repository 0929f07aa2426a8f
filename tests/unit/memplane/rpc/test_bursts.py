import asyncio
from typing import Any

import grpc

from memplane.rpc.server import bind, new_server

CALLS = 1_500


async def slowly(_request: bytes, _context: Any) -> bytes:
    await asyncio.sleep(0.001)
    return b"answer"


async def test_a_burst_on_one_connection_waits_at_its_client_and_no_call_is_refused() -> None:
    server = new_server([])
    handlers = {"Call": grpc.unary_unary_rpc_method_handler(slowly)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Bursts", handlers),))
    port = bind(server, "127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/test.Bursts/Call")
            answers = await asyncio.gather(*(call(b"request") for _ in range(CALLS)))
    finally:
        await server.stop(0)
    assert answers == [b"answer"] * CALLS
