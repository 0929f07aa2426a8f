"""Every method of the contract has its rule, and every rule is of a method."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import grpc
import pytest
from google.longrunning import operations_pb2
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

import memplane.v1
from memplane.policy.rbac import PERMISSIONS
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.permissions import ADMIN, MEMORY, NODE, OWN, PUBLIC, RULES, Rule, namespaces_asked
from memplane.rpc.server import bind, new_server
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb

FOREIGN = (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR, operations_pb2.DESCRIPTOR)


def contract() -> list[FileDescriptor]:
    files = sorted(Path(memplane.v1.__path__[0]).glob("*_pb2.py"))
    return [import_module(f"memplane.v1.{file.stem}").DESCRIPTOR for file in files]


def methods() -> dict[str, MethodDescriptor]:
    services = [service for file in (*contract(), *FOREIGN) for service in file.services_by_name.values()]
    return {f"/{service.full_name}/{method.name}": method for service in services for method in service.methods}


def test_every_method_has_a_rule_and_every_rule_a_method() -> None:
    assert RULES.keys() == methods().keys()


def test_a_rule_asks_for_a_permission_that_there_is() -> None:
    assert {rule.permission for rule in RULES.values()} <= {*PERMISSIONS, PUBLIC, NODE, OWN}
    assert all(rule.permission not in {PUBLIC, NODE, OWN} for name, rule in RULES.items() if name.startswith(MEMORY))


@pytest.mark.parametrize(("name", "method"), methods().items(), ids=lambda value: value if type(value) is str else "")
def test_a_rule_finds_every_namespace_of_a_request(name: str, method: MethodDescriptor) -> None:
    """By the fields of the request down to the namespaces; a new field that names one fails here."""
    paths = {path for path in _paths(method.input_type.fields, ()) if path.rpartition(".")[2] in NAMES}
    assert set(RULES[name].namespaces) == paths


NAMES = ("namespace", "namespaces")


def _paths(fields: Iterable[FieldDescriptor], above: tuple[str, ...]) -> list[str]:
    found = []
    for field in fields:
        here = (*above, field.name)
        found.append(".".join(here))
        if field.message_type is not None and len(here) < 4 and field.message_type.full_name.startswith("memplane."):
            found += _paths(field.message_type.fields, here)
    return found


@pytest.mark.parametrize(
    ("rule", "request_", "asked"),
    [
        (Rule("x"), pb.GetMemoryRequest(namespace="a"), ()),
        (RULES[MEMORY + "GetMemory"], pb.GetMemoryRequest(namespace="a"), ("a",)),
        (RULES[MEMORY + "GetMemory"], pb.GetMemoryRequest(), ()),
        (
            RULES[MEMORY + "GetContext"],
            pb.GetContextRequest(search=pb.SearchMemoriesRequest(namespace="a", namespaces=["b", "a"])),
            ("a", "b"),
        ),
        (
            RULES[MEMORY + "UpdateMemory"],
            pb.UpdateMemoryRequest(memory=memory_pb2.Memory(namespace="Bad Name")),
            ("Bad Name",),
        ),
        (
            RULES[MEMORY + "BatchWriteMemories"],
            pb.BatchWriteMemoriesRequest(requests=[pb.WriteMemoryRequest(namespace=name) for name in "aba"]),
            ("a", "b"),
        ),
    ],
)
def test_the_namespaces_of_a_request_are_read_by_path(rule: Rule, request_: Message, asked: tuple[str, ...]) -> None:
    assert namespaces_asked(rule, request_) == asked


def test_the_permissions_are_those_that_the_contract_tells() -> None:
    """The contract's comments are what clients read; each method's rule stands there."""
    root = Path(memplane.v1.__path__[0]).parents[1] / "proto" / "memplane" / "v1"
    for file in root.glob("*_service.proto"):
        comment = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith("//"):
                comment += line.strip().removeprefix("//")
            elif line.strip().startswith("rpc "):
                rule = RULES[_full_name(file, line.split()[1].partition("(")[0])]
                if rule.permission in PERMISSIONS and rule.permission != "maintenance":  # told once, of the service
                    assert f"`{rule.permission}`" in comment, line
                comment = ""
            else:
                comment = ""


def _full_name(file: Path, method: str) -> str:
    service = "".join(part.capitalize() for part in file.stem.split("_"))
    return f"{ADMIN.rpartition('.')[0]}.{service}/{method}"


async def test_what_is_served_without_a_rule_is_not_offered() -> None:
    async def answer(_request: bytes, _context: object) -> bytes:
        return b"answer"

    server = new_server([ErrorInterceptor(lambda *_: None)])
    handlers = {"Forgotten": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", handlers),))
    port = bind(server, "127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await channel.unary_unary("/test.Service/Forgotten")(b"")
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    finally:
        await server.stop(None)
