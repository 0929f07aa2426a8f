"""What each method of MemPlane needs: the one table, which both planes refuse by and a test holds against the contract.

Rules:
1. A method that is not in the table is not offered, whatever serves it.
2. A call needs its permission on the namespaces that it names; one that names several, on one of them at least: the
   others are left out of its answer. A call that names none needs it on `*`.
3. The table says what a call needs before it is looked at closely. What it touches may need more: the cell of each
   memory (`memplane/policy/cells.py`), `share.propose` for SHARED ones, `review` for what waits for a person.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

PUBLIC: Final = "public"
"""Anybody may, without credentials."""
NODE: Final = "node"
"""A data plane may, by its node key or certificate."""
OWN: Final = "own"
"""Whoever is recognised may, and is told of what is its own."""

MEMORY: Final = "/memplane.v1.MemoryService/"
MAINTENANCE: Final = "/memplane.v1.MaintenanceService/"
ADMIN: Final = "/memplane.v1.PolicyAdminService/"
DISCOVERY: Final = "/memplane.v1.PolicyDiscoveryService/"
OPERATIONS: Final = "/google.longrunning.Operations/"
HEALTH: Final = "/grpc.health.v1.Health/"
REFLECTION: Final = "/grpc.reflection.v1alpha.ServerReflection/"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a method needs.

    `permission` is one of the policy's, or PUBLIC, NODE or OWN. `namespaces` are the paths of the request's fields that
    name them; empty: it is about none. `one_by_one`: each part of the request has its own answer, also a refusal.
    """

    permission: str
    namespaces: tuple[str, ...] = ()
    one_by_one: bool = False


_READ: Final = Rule("memory.read", ("namespace",))
_MAINTENANCE: Final = Rule("maintenance")
_POLICY_READ: Final = Rule("policy.read")
_POLICY_RELOAD: Final = Rule("policy.reload")

RULES: Final[Mapping[str, Rule]] = {
    MEMORY + "WriteMemory": Rule("memory.write", ("namespace",)),
    MEMORY + "BatchWriteMemories": Rule("memory.write", ("requests.namespace",), one_by_one=True),
    MEMORY + "SearchMemories": Rule("memory.read", ("namespace", "namespaces")),
    MEMORY + "GetContext": Rule("memory.read", ("search.namespace", "search.namespaces")),
    MEMORY + "GetMemory": _READ,
    MEMORY + "ListMemories": _READ,
    MEMORY + "UpdateMemory": Rule("memory.write", ("memory.namespace",)),
    MEMORY + "ForgetMemory": Rule("memory.forget", ("namespace",)),
    MEMORY + "ListMemoryVersions": _READ,
    MAINTENANCE + "CheckIndexes": _MAINTENANCE,
    MAINTENANCE + "Reindex": _MAINTENANCE,
    MAINTENANCE + "ListDeadLetters": _MAINTENANCE,
    MAINTENANCE + "ReplayDeadLetters": _MAINTENANCE,
    MAINTENANCE + "ListSetAsideWrites": _MAINTENANCE,
    MAINTENANCE + "ReplaySetAsideWrites": _MAINTENANCE,
    ADMIN + "ReloadPolicySet": _POLICY_RELOAD,
    ADMIN + "ValidatePolicySet": _POLICY_READ,
    ADMIN + "GetPolicySetRevision": _POLICY_READ,
    ADMIN + "ListPolicySetRevisions": _POLICY_READ,
    ADMIN + "GetEffectivePolicy": Rule("policy.read", ("namespace",)),
    ADMIN + "ListDataPlaneStatuses": _POLICY_READ,
    ADMIN + "WatchDataPlaneStatuses": _POLICY_READ,
    ADMIN + "DiffPolicySet": _POLICY_READ,
    ADMIN + "RollbackPolicySet": _POLICY_RELOAD,
    ADMIN + "ExplainDecision": Rule("policy.read", ("namespace",)),
    ADMIN + "CreateApiKey": _POLICY_RELOAD,
    ADMIN + "ListApiKeys": _POLICY_READ,
    ADMIN + "RevokeApiKey": _POLICY_RELOAD,
    DISCOVERY + "StreamPolicies": Rule(NODE),
    DISCOVERY + "FetchPolicies": Rule(NODE),
    OPERATIONS + "GetOperation": Rule(OWN),
    OPERATIONS + "WaitOperation": Rule(OWN),
    OPERATIONS + "ListOperations": Rule(OWN),
    OPERATIONS + "CancelOperation": Rule(OWN),
    OPERATIONS + "DeleteOperation": Rule(OWN),
    HEALTH + "Check": Rule(PUBLIC),
    HEALTH + "List": Rule(PUBLIC),
    HEALTH + "Watch": Rule(PUBLIC),
    REFLECTION + "ServerReflectionInfo": Rule(PUBLIC),
}


def namespaces_asked(rule: Rule, request: Message) -> tuple[str, ...]:
    """The namespaces that a request names, each once, as they stand: they may be malformed."""
    return tuple(dict.fromkeys(name for path in rule.namespaces for name in _at(request, path.split(".")) if name))


def _at(found: Message, path: list[str]) -> Iterator[str]:
    value = getattr(found, path[0])
    parts = [value] if isinstance(value, str | Message) else value
    for part in parts:
        if isinstance(part, Message):
            yield from _at(part, path[1:])
        else:
            yield part
