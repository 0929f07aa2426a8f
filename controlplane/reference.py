"""The access rules as casbin reads them: a second opinion, for the control plane alone.

Data planes decide by the compiled index (`memplane/policy/access.py`). Here the same `rbac` section becomes casbin
policies and links, row by row as it stands, so that nothing of the index is used: not its tables, not its masks, not
its closure of roles. The matching of namespaces is our own, label by label: casbin's `keyMatch` family compares text,
and would let `dept.sales*` cover `dept.salesforce`.

At every compile some questions are put to both (`differences`); a property test and `bench/access.py` put very many.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import casbin
from casbin.model import Model
from casbin.rbac.default_role_manager import RoleManager

from memplane.identity import Identity
from memplane.policy.access import EVERY_NAMESPACE, AccessIndex
from memplane.policy.cells import KINDS, LAYERS, SENSITIVITIES, cell
from memplane.policy.names import is_namespace
from memplane.policy.rbac import MEMORY_PERMISSIONS, PERMISSIONS, Grant, Rbac

MOST_LEVELS = 20
"""Links that casbin follows: principal, group, and a chain of roles as long as the compiler lets pass, with room."""

MOST_PRINCIPALS, MOST_GRANTS, MOST_QUESTIONS = 3, 100, 30
"""What a compile asks casbin about, some tens of milliseconds: 10,000 grants take it 3 s to load (2 cores, 2026-11)."""

_MODEL = """
[request_definition]
r = subject, permission, namespace, layer, kind, sensitivity
[policy_definition]
p = subject, permission, namespace, layers, kinds, sensitivities, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = gives(p.permission, r.permission, p.layers + p.kinds + p.sensitivities) && covers(p.namespace, r.namespace) && \
among(r.layer, p.layers) && among(r.kind, p.kinds) && among(r.sensitivity, p.sensitivities) && g(r.subject, p.subject)
"""


class Question(NamedTuple):
    """Whether somebody may, of memories of one cell; `layer`, `kind`, `sensitivity` are the contract's numbers."""

    identity: Identity
    permission: str
    namespace: str | None
    layer: int
    kind: int
    sensitivity: int


class CasbinReference:
    """What casbin says of an `rbac` section. Not for serving: a check takes as long as there are grants."""

    def __init__(self, rbac: Rbac):
        model = Model()
        model.load_model_from_text(_MODEL)
        self._enforcer = casbin.Enforcer(model, enable_log=False)
        self._enforcer.set_role_manager(RoleManager(MOST_LEVELS))
        for name, function in (("covers", _covers), ("gives", _gives), ("among", _among)):
            self._enforcer.add_function(name, function)
        self._rbac = rbac
        self._known: set[str] = set()
        self.row_count = sum(self._add_rows(holder, grants) for holder, grants in _grants(rbac))
        self._add_links(list(_links(rbac)))

    def allows(self, question: Question) -> bool:
        """Its answer. What is no namespace or no permission is refused before it is asked, as by the index."""
        namespace = question.namespace
        if question.permission not in PERMISSIONS or not (namespace is None or is_namespace(namespace)):
            return False
        cells = LAYERS[question.layer - 1], KINDS[question.kind - 1], SENSITIVITIES[question.sensitivity]
        subject = self._subject(question.identity)
        return bool(self._enforcer.enforce(subject, question.permission, namespace or "", *cells))

    def _subject(self, identity: Identity) -> str:
        """What an identity is called; with claims, a subject of its own that has what principal and groups have."""
        principal = f"principal {identity.principal_id}"
        if not identity.claims:
            return principal
        bearer = f"bearer {identity.principal_id} {sorted(identity.claims)}"
        if bearer not in self._known:
            self._known.add(bearer)
            brought = [name for name, group in self._rbac.groups.items() if identity.claims & set(group.claims)]
            self._add_links([(bearer, principal), *((bearer, f"group {name}") for name in brought)])
        return bearer

    def _add_rows(self, holder: str, grants: Sequence[Grant]) -> int:
        rows = dict.fromkeys(row for grant in grants for row in _rows(holder, grant))
        if rows:
            self._enforcer.add_policies([list(row) for row in rows])
        return len(rows)

    def _add_links(self, links: Sequence[tuple[str, str]]) -> None:
        if links:
            self._enforcer.add_grouping_policies([list(link) for link in dict.fromkeys(links)])


def differences(rbac: Rbac) -> list[Question]:
    """Questions that the index and casbin answer differently: none, or there is a defect.

    Some principals are asked for, and what they hold is loaded, as far as MOST_GRANTS lets. Who and what is asked
    follows from the section alone.
    """
    part = _part(rbac)
    reference, index = CasbinReference(part), AccessIndex(rbac, None)
    asked = list(islice(_questions(part), MOST_QUESTIONS))
    return [question for question in asked if reference.allows(question) != index_allows(index, question)]


def _part(rbac: Rbac) -> Rbac:
    """Principals with all that they hold, as many as there are grants for, by name."""
    part = Rbac()
    for name in sorted(rbac.principals):
        grown = _with_principal(part, rbac, name)
        if sum(len(grants) for _, grants in _grants(grown)) <= MOST_GRANTS:
            part = grown
        if len(part.principals) == MOST_PRINCIPALS:
            break
    return part


def _with_principal(part: Rbac, rbac: Rbac, name: str) -> Rbac:
    groups = {key: group for key, group in rbac.groups.items() if name in group.members}
    pending = [*rbac.principals[name].roles, *(role for group in groups.values() for role in group.roles)]
    roles = dict(part.roles)
    while pending:
        role = pending.pop()
        if role not in roles:
            roles[role] = rbac.roles[role]
            pending += rbac.roles[role].includes
    principals = {**part.principals, name: rbac.principals[name]}
    return Rbac(roles=roles, groups={**part.groups, **groups}, principals=principals)


def index_allows(index: AccessIndex, question: Question) -> bool:
    """What the index says."""
    cells = index.cells(question.identity, question.permission, question.namespace)
    return bool(cells & cell(question.layer, question.kind, question.sensitivity))


def _questions(rbac: Rbac) -> Iterator[Question]:
    """Around the places that grants name: there, below, beside (a name that only begins alike), and without one."""
    named = dict.fromkeys(grant.namespace for _, grants in _grants(rbac) for grant in grants)
    places = [place for name in named if name != EVERY_NAMESPACE for place in (name, f"{name}.x", f"{name}x")]
    around: list[str | None] = [None, *(place for place in places if is_namespace(place))]
    who = [Identity(name) for name in rbac.principals]
    who += [Identity("token:x", claims=frozenset(group.claims)) for group in rbac.groups.values() if group.claims]
    cells = [(layer, kind, level) for level in range(5) for kind in range(1, 8) for layer in range(1, 5)]
    count = len(who) * len(PERMISSIONS) * len(around)
    stride = next((step for step in (7919, 7907, 7901) if count % step), 1)  # spreads the few over all that there are
    for number in range(count):
        rest, place = divmod(number * stride % count, len(around))
        identity, permission = divmod(rest, len(PERMISSIONS))
        cell_ = cells[number * 37 % len(cells)]
        yield Question(who[identity], PERMISSIONS[permission], around[place], *cell_)


def _grants(rbac: Rbac) -> Iterator[tuple[str, Sequence[Grant]]]:
    yield from ((f"role {name}", role.grants) for name, role in rbac.roles.items())
    yield from ((f"group {name}", group.grants) for name, group in rbac.groups.items())
    yield from ((f"principal {name}", who.grants) for name, who in rbac.principals.items())


def _links(rbac: Rbac) -> Iterator[tuple[str, str]]:
    for name, role in rbac.roles.items():
        yield from ((f"role {name}", f"role {included}") for included in role.includes)
    for name, group in rbac.groups.items():
        yield from ((f"group {name}", f"role {role}") for role in group.roles)
        yield from ((f"principal {member}", f"group {name}") for member in group.members)
    for name, who in rbac.principals.items():
        yield from ((f"principal {name}", f"role {role}") for role in who.roles)


def _rows(holder: str, grant: Grant) -> Iterator[tuple[str, ...]]:
    conditions = (" ".join(grant.layers), " ".join(grant.kinds), " ".join(grant.sensitivities))
    for permission in grant.permissions:
        yield holder, permission, grant.namespace, *conditions, grant.effect


def _covers(granted: str, asked: str) -> bool:
    """Whether a grant's namespace covers the one asked about, "" for none: the labels of the one begin the other's."""
    if granted == EVERY_NAMESPACE:
        return True
    labels = granted.split(".")
    return asked.split(".")[: len(labels)] == labels


def _gives(granted: str, asked: str, conditions: str) -> bool:
    """Whether a grant is of this permission; `*` under conditions is of those that are about memories."""
    return granted == asked or (granted == "*" and (not conditions or asked in MEMORY_PERMISSIONS))


def _among(value: str, names: str) -> bool:
    """Whether a condition holds; one that names nothing does."""
    return not names or value in names.split(" ")
