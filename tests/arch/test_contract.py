"""Our nouns and the contract's are the same, and every RPC is offered."""

from enum import IntEnum

import pytest

from controlplane.server import PolicyAdminServicer
from controlplane.stream import PolicyDiscoveryServicer
from dataplane import model
from dataplane.logic.filters import FIELDS
from dataplane.server.maintenance_service import MaintenanceService
from dataplane.server.memory_service import MemoryService
from memplane.v1 import (
    maintenance_service_pb2,
    memory_pb2,
    memory_service_pb2,
    policy_admin_service_pb2,
    policy_discovery_service_pb2,
)

PAIRS = (
    (model.Layer, memory_pb2.Layer, "LAYER_"),
    (model.Kind, memory_pb2.Kind, "KIND_"),
    (model.SourceType, memory_pb2.SourceType, "SOURCE_TYPE_"),
    (model.State, memory_pb2.State, "STATE_"),
    (model.Pool, memory_pb2.Pool, "POOL_"),
    (model.Action, memory_pb2.DecisionAction, "DECISION_ACTION_"),
    (model.Operator, memory_pb2.FilterOperator, "FILTER_OPERATOR_"),
)


@pytest.mark.parametrize(("ours", "theirs", "prefix"), PAIRS, ids=[pair[2] for pair in PAIRS])
def test_our_enums_have_the_contracts_names_and_numbers(ours: type[IntEnum], theirs: object, prefix: str) -> None:
    contract = {name.removeprefix(prefix): number for name, number in theirs.items() if number}  # type: ignore[attr-defined]  # enums by name
    assert {item.name: item.value for item in ours} == contract


@pytest.mark.parametrize(
    ("module", "service", "servicer"),
    [
        (memory_service_pb2, "MemoryService", MemoryService),
        (maintenance_service_pb2, "MaintenanceService", MaintenanceService),
        (policy_admin_service_pb2, "PolicyAdminService", PolicyAdminServicer),
        (policy_discovery_service_pb2, "PolicyDiscoveryService", PolicyDiscoveryServicer),
    ],
)
def test_every_rpc_of_the_contract_is_implemented(module: object, service: str, servicer: type) -> None:
    methods = module.DESCRIPTOR.services_by_name[service].methods  # type: ignore[attr-defined]  # a module by name
    own = {name for each in servicer.__mro__ if not each.__module__.startswith("memplane.v1") for name in vars(each)}
    assert [method.name for method in methods if method.name not in own] == []


def test_the_filter_vocabulary_is_the_one_that_the_contract_lists() -> None:
    assert set(FIELDS) - {"subject_id", "pool"} <= {
        *(field.name for field in memory_pb2.Memory.DESCRIPTOR.fields),
        "source_type",
    }
