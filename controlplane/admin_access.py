"""PolicyAdminService, the part that explains who may do what."""

from typing import Any

import grpc

from controlplane.admin_part import AdminPart
from controlplane.compile import Compiled
from controlplane.diagnose import show_path
from controlplane.explain import Asked, Explanation, Rule, condition_of, explain
from controlplane.reload import Reloader
from controlplane.requests import inline_of
from controlplane.snapshots import Snapshots
from memplane.errors import InvalidField, PolicyNotLoaded
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.cells import KINDS, LAYERS, SENSITIVITIES, mask
from memplane.policy.names import is_namespace
from memplane.policy.rbac import BOOTSTRAP_ADMIN, PERMISSIONS, Rbac
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2

MAX_PRINCIPAL_CHARS = 512
MAX_CLAIMS = 1000

_Context = grpc.aio.ServicerContext[Any, Any]


class AccessAdmin(AdminPart):
    """Explains decisions."""

    _reloader: Reloader
    _snapshots: Snapshots

    async def ExplainDecision(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ExplainDecisionRequest, context: _Context
    ) -> admin_pb2.ExplainDecisionResponse:
        """Whether somebody may, and by which rules. A grant of `policy.read` on the namespace is enough."""
        namespace = request.namespace if is_namespace(request.namespace) else None
        self._require(context, "policy.read", namespace)
        asked, documents = _asked(request), inline_of(request)
        if documents is None:
            return self._by_standing(asked)
        self._require(context, "policy.read")
        compiled = await self._reloader.compile(documents, with_cases=False)
        if compiled.policy is None:
            raise InvalidField.one("inline.documents", f"are refused: {compiled.errors[0].message}")
        told = self._explained(asked, compiled, AccessIndex(compiled.policy.rbac, None))
        return _response(told, compiled.version, 0)

    def _by_standing(self, asked: Asked) -> admin_pb2.ExplainDecisionResponse:
        current = self._snapshots.current
        if current is None:
            raise PolicyNotLoaded
        told = self._explained(asked, current.compiled, current.access)
        return _response(told, current.revision.version, current.revision.generation)

    def _explained(self, asked: Asked, compiled: Compiled, index: AccessIndex) -> Explanation:
        """The bootstrap administrator stands in no document; the planes' configuration decides of it."""
        index = self._snapshots.access if asked.identity.principal_id == BOOTSTRAP_ADMIN else index
        rbac = compiled.policy.rbac if compiled.policy is not None else None
        return explain(asked, rbac or Rbac(), index, compiled.positions)


def _asked(request: admin_pb2.ExplainDecisionRequest) -> Asked:
    """The question. Raises InvalidField."""
    if not 0 < len(request.principal) <= MAX_PRINCIPAL_CHARS:
        raise InvalidField.one("principal", f"required: an id of at most {MAX_PRINCIPAL_CHARS} characters")
    if request.permission not in PERMISSIONS:
        raise InvalidField.one("permission", f"one of {', '.join(PERMISSIONS)}")
    if request.namespace and not is_namespace(request.namespace):
        raise InvalidField.one("namespace", "empty, or 1 to 9 dotted labels of 1 to 63 characters [a-z0-9_-]")
    if len(request.claims) > MAX_CLAIMS:
        raise InvalidField.one("claims", f"{len(request.claims)}; at most {MAX_CLAIMS}")
    cells = mask(
        _named("layer", request.layer, LAYERS, 1),
        _named("kind", request.kind, KINDS, 1),
        _named("sensitivity", request.sensitivity, SENSITIVITIES, 0),
    )
    identity = Identity(request.principal, claims=frozenset(request.claims))
    return Asked(identity, request.permission, request.namespace or None, cells)


def _named(field: str, number: int, names: tuple[Any, ...], first: int) -> tuple[Any, ...]:
    """The name of an enum's number, or none for 0: any. `first` is the number of the first name."""
    if number == 0:
        return ()
    if not first <= number < first + len(names):
        raise InvalidField.one(field, f"{number}; one of {', '.join(names)}")
    return (names[number - first],)


def _response(told: Explanation, version: str, generation: int) -> admin_pb2.ExplainDecisionResponse:
    return admin_pb2.ExplainDecisionResponse(
        allowed=told.allowed,
        conditional=told.conditional,
        summary=told.summary,
        rules=[_rule_message(rule) for rule in told.rules],
        version_info=version,
        generation=generation,
    )


def _rule_message(rule: Rule) -> policy_pb2.AccessRule:
    return policy_pb2.AccessRule(
        effect=rule.grant.effect,
        namespace=rule.grant.namespace,
        permissions=rule.grant.permissions,
        through=rule.through,
        file=rule.file,
        line=rule.line,
        path=show_path(rule.path),
        condition=condition_of(rule.grant),
    )
