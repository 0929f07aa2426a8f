"""What a stale policy leaves."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import pytest

from dataplane.server.stale import READS, SERVICES, StaleDoor
from memplane.errors import PolicyStale
from memplane.policy.degradation import StaleAction
from memplane.rpc.errors import status_of
from memplane.rpc.permissions import RULES

WRITES = {
    "/memplane.v1.MemoryService/WriteMemory",
    "/memplane.v1.MemoryService/BatchWriteMemories",
    "/memplane.v1.MemoryService/UpdateMemory",
    "/memplane.v1.MemoryService/ForgetMemory",
    "/memplane.v1.MaintenanceService/Reindex",
    "/memplane.v1.MaintenanceService/ReplayDeadLetters",
    "/memplane.v1.MaintenanceService/ReplaySetAsideWrites",
    "/google.longrunning.Operations/CancelOperation",
    "/google.longrunning.Operations/DeleteOperation",
}
OPEN = {"/grpc.health.v1.Health/Check", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}


def admit(_method: str, _request: Any, _size_bytes: int, _context: Any) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def refused(action: StaleAction | None, methods: frozenset[str] | set[str]) -> set[str]:
    """What is refused, as a call and as a stream alike."""
    context: Any = None
    door, calls, streams = StaleDoor(admit, lambda: action), set(), set()
    for method in methods:
        try:
            door(method, None, 0, context)
        except PolicyStale:
            calls.add(method)
        try:
            door.stream(method, context)
        except PolicyStale:
            streams.add(method)
    assert calls == streams
    return calls


@pytest.mark.parametrize("action", [None, "serve"])
def test_a_fresh_policy_and_one_that_is_to_be_served_refuse_nothing(action: StaleAction | None) -> None:
    assert refused(action, READS | WRITES | OPEN) == set()


def test_read_only_leaves_reads() -> None:
    assert refused("read_only", READS | WRITES | OPEN) == WRITES


def test_deny_leaves_health_and_reflection_alone() -> None:
    assert refused("deny", READS | WRITES | OPEN) == READS | WRITES


def test_a_method_that_nobody_named_is_no_read() -> None:
    assert refused("read_only", {"/memplane.v1.MemoryService/Added"})


def test_every_method_that_a_data_plane_offers_is_named() -> None:
    assert {method for method in RULES if method.startswith(SERVICES)} == READS | WRITES


def test_the_error_says_what_is_served_and_when_to_ask_again() -> None:
    status = status_of(PolicyStale("read_only"))
    assert "nothing is written" in status.message
    assert len(status.details) == 2
