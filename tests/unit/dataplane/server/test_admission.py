import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from dataplane.pipelines.caller import Caller
from dataplane.pipelines.turn import holding, next_turn
from dataplane.pipelines.write import EMBEDDED_TOGETHER, SETTLED_TOGETHER
from dataplane.server.admission import CallAdmission, check_rule, first_cost, namespace_of, path_of
from dataplane.server.waiting_line import LONG_S
from memplane.errors import PermissionDenied, PolicyNotLoaded, Unauthenticated
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from memplane.rpc.limits import CallLimiter
from memplane.rpc.permissions import MAINTENANCE, MEMORY, OPERATIONS, RULES, Rule
from memplane.v1 import maintenance_service_pb2, memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.callers import FakeContext, callers_of

POLICY = {
    "rbac": {
        "principals": {
            "ann": {
                "api_key_sha256": ["1" * 64],
                "grants": [{"namespace": "dept.sales", "permissions": ["memory.read", "memory.write"]}],
            }
        }
    }
}


def caller(principal_id: str = "ann") -> Caller:
    model = PolicySet.model_validate_json(json.dumps(POLICY))
    return Caller(
        Identity(principal_id), PolicySnapshot("v", 1, 0, EffectivePolicies(model), AccessIndex(model.rbac, None))
    )


def rule(method: str) -> Rule:
    return RULES[MEMORY + method]


def batch(*namespaces: str, **fields: Any) -> pb.BatchWriteMemoriesRequest:
    requests = [pb.WriteMemoryRequest(namespace=name, content="x", **fields) for name in namespaces]
    return pb.BatchWriteMemoriesRequest(requests=requests)


@pytest.mark.parametrize(
    ("request_", "namespace"),
    [
        (pb.WriteMemoryRequest(namespace="a.b"), "a.b"),
        (pb.SearchMemoriesRequest(namespace="a"), "a"),
        (pb.SearchMemoriesRequest(namespaces=["b", "c"]), "b"),
        (pb.SearchMemoriesRequest(), ""),
        (pb.GetContextRequest(search=pb.SearchMemoriesRequest(namespaces=["b"])), "b"),
        (pb.GetMemoryRequest(namespace="a"), "a"),
        (pb.ListMemoriesRequest(namespace="a"), "a"),
        (pb.UpdateMemoryRequest(memory=memory_pb2.Memory(namespace="a")), "a"),
        (pb.ForgetMemoryRequest(namespace="a"), "a"),
        (pb.ListMemoryVersionsRequest(namespace="a"), "a"),
        (batch("a", "b", "b"), "b"),
        (batch("a", "b"), "a"),
        (batch(), ""),
        (maintenance_service_pb2.ReindexRequest(), ""),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value or "none",
)
def test_a_request_is_about_the_namespace_that_it_names_first_or_most_often(request_: Any, namespace: str) -> None:
    assert namespace_of(request_) == namespace


def test_a_call_waits_in_its_namespace_and_beside_all_of_them_where_the_caller_may_not() -> None:
    assert path_of(rule("WriteMemory"), pb.WriteMemoryRequest(namespace="dept.sales.x"), caller()) == (
        "dept",
        "sales",
        "x",
    )
    assert path_of(rule("BatchWriteMemories"), batch("dept.hr"), caller()) == ("?", "ann")
    assert path_of(rule("ForgetMemory"), pb.ForgetMemoryRequest(namespace="dept.sales"), caller()) == ("?", "ann")
    assert path_of(rule("SearchMemories"), pb.SearchMemoriesRequest(namespace="Bad Name"), caller()) == ("?", "ann")
    check = RULES[MAINTENANCE + "CheckIndexes"]
    assert path_of(check, maintenance_service_pb2.CheckIndexesRequest(), caller("ben")) == ("?", "ben")


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("WriteMemory", pb.WriteMemoryRequest(namespace="dept.hr")),
        ("ForgetMemory", pb.ForgetMemoryRequest(namespace="dept.sales")),
        ("SearchMemories", pb.SearchMemoriesRequest(namespace="dept.hr", namespaces=["dept"])),
    ],
)
def test_who_may_nothing_of_what_is_asked_is_refused_at_the_door(method: str, request_: Any) -> None:
    with pytest.raises(PermissionDenied):
        check_rule(rule(method), request_, caller())


def test_what_has_answers_of_its_own_or_is_malformed_or_partly_allowed_goes_in() -> None:
    check_rule(rule("BatchWriteMemories"), batch("dept.hr"), caller())
    check_rule(rule("WriteMemory"), pb.WriteMemoryRequest(namespace="Bad Name"), caller())
    check_rule(rule("WriteMemory"), pb.WriteMemoryRequest(), caller())
    check_rule(rule("SearchMemories"), pb.SearchMemoriesRequest(namespaces=["dept.hr", "dept.sales"]), caller())
    with pytest.raises(PermissionDenied):
        check_rule(RULES[MAINTENANCE + "CheckIndexes"], maintenance_service_pb2.CheckIndexesRequest(), caller())


def test_a_batch_pays_for_its_first_turn_and_everything_else_for_one_unit() -> None:
    assert first_cost(pb.SearchMemoriesRequest()) == first_cost(batch()) == first_cost(batch("a")) == 1
    assert first_cost(batch(*["a"] * 1_000)) == EMBEDDED_TOGETHER
    assert first_cost(batch(*["a"] * 1_000, embedding=[1.0])) == SETTLED_TOGETHER


def door(policy: Callable[[], PolicySnapshot | None]) -> CallAdmission:
    callers = callers_of(policy, SystemClock())
    return CallAdmission(callers, CallLimiter(lambda: 0.0), lambda _outcome, _seconds: None)


async def test_health_never_waits_not_even_for_a_policy() -> None:
    async with door(lambda: None)("/grpc.health.v1.Health/Check", None, 0, None):  # type: ignore[arg-type]  # its context is not looked at
        pass


async def test_operations_and_memories_are_for_those_who_are_known() -> None:
    for method in (OPERATIONS + "GetOperation", MEMORY + "GetMemory"):
        with pytest.raises(PolicyNotLoaded):
            async with door(lambda: None)(method, None, 0, cast("Any", FakeContext())):
                pass
        with pytest.raises(Unauthenticated):
            async with door(lambda: caller().snapshot)(method, None, 0, cast("Any", FakeContext())):
                pass


async def test_a_line_that_refuses_for_long_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    admission = door(lambda: caller().snapshot)
    assert admission.problems() == ()
    monkeypatch.setattr(admission.reads, "refusing_for_s", lambda: LONG_S + 2)
    (problem,) = admission.problems()
    assert problem.code == "OVERLOADED"
    assert problem.message.startswith("calls have been refused for 12 s; ")
    assert admission.readings["waiting_calls"]() == 0


async def test_work_that_came_by_no_door_goes_on_at_once_and_other_work_renews_its_turn() -> None:
    renewed = []

    class Turn:
        async def renew(self, cost: int) -> None:
            renewed.append(cost)

    await next_turn(5)
    with holding(Turn()):
        await next_turn(7)
    await next_turn(9)
    assert renewed == [7]
