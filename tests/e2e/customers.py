"""What end-to-end tests write on the stores of a company: numbered statements that are told apart by their words."""

from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.e2e.control_process import ADMIN

NAMESPACE = "dept.sales.agent_a"


def statement(number: int) -> str:
    return f"Customer {number} orders part X-{1000 + number} from warehouse {number % 7}."


async def write(stub: MemoryServiceStub, number: int, timeout_s: float) -> pb.WriteMemoryResponse:
    request = pb.WriteMemoryRequest(
        namespace=NAMESPACE, content=statement(number), session_id="s", request_id=f"request-{number}"
    )
    return await stub.WriteMemory(request, metadata=ADMIN, timeout=timeout_s)
