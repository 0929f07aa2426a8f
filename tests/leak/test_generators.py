"""Every RPC of the data plane has a generator: one that comes without fails here."""

from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from dataplane.main import MAINTENANCE, OPERATIONS, READS
from memplane.v1 import maintenance_service_pb2, memory_service_pb2
from tests.leak.calls import GENERATORS, SERVICES, names_of_rpcs

WITHOUT_MEMORIES = {health.SERVICE_NAME, reflection.SERVICE_NAME}
"""Services that know nothing of memories."""


def test_every_rpc_of_every_service_has_a_generator_and_none_is_left_over() -> None:
    assert set(GENERATORS) == set(names_of_rpcs())


def test_every_service_that_a_data_plane_announces_is_tested() -> None:
    assert {READS, MAINTENANCE, OPERATIONS} - WITHOUT_MEMORIES == set(SERVICES)


def test_every_service_of_the_contract_that_a_data_plane_has_is_tested() -> None:
    files = (memory_service_pb2, maintenance_service_pb2)
    assert {service.full_name for file in files for service in file.DESCRIPTOR.services_by_name.values()} < set(
        SERVICES
    )
