"""Writes that wait for their embedding hold no connection: reads go on beside 200 of them with a pool of ten."""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.codec import fields_of
from dataplane.model import Vector
from memplane.policy.degradation import DegradationPolicy
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.integration.harness import KEEP_ALL, as_user, running_plane, write
from tests.postgres import open_store

WRITES = 200
PLACES = DegradationPolicy().embedder.concurrency
"""So many writes are with the embedder at once; the others wait for a place there."""

ROOMY = {**KEEP_ALL, "degradation_policy": {"admission": {"concurrency": 2 * WRITES}}}
"""Admission lets all of them in: what is looked at here is what they hold once they are."""


class HeldEmbedder(HashEmbedder):
    """Embeds memories only once it is let go."""

    def __init__(self) -> None:
        self.waiting = 0
        self.is_full = asyncio.Event()
        self.let_go = asyncio.Event()
        self.let_go.set()

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        self.waiting += 1
        if self.waiting >= PLACES:
            self.is_full.set()
        await self.let_go.wait()
        return await super().embed_passages(texts, deadline_s)


async def test_reads_go_on_while_200_writes_wait_for_the_embedder(postgres_options: PostgresOptions) -> None:
    assert postgres_options.pool_size == 10
    embedder, store = HeldEmbedder(), await open_store(postgres_options, fields_of)
    async with running_plane(policy=ROOMY, records=store, embedder=embedder) as plane:
        first = await write(plane, "Acme renews in March")
        embedder.let_go.clear()
        embedder.waiting = 0
        writes = [asyncio.create_task(write(plane, f"Customer {number} orders X-{number}")) for number in range(WRITES)]
        await asyncio.wait_for(embedder.is_full.wait(), 30)
        get = pb.GetMemoryRequest(namespace="dept.sales", id=first.memory.id)
        async with grpc.aio.insecure_channel(plane.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub: Any = MemoryServiceStub(channel)  # a connection of its own: one carries 100 calls at once
            for _ in range(20):
                read = await stub.GetMemory(get, metadata=as_user(), timeout=5)
                assert read.memory.content == "Acme renews in March"
        assert not any(task.done() for task in writes)
        embedder.let_go.set()
        stored = await asyncio.gather(*writes)
        assert len({answer.memory.id for answer in stored}) == WRITES
