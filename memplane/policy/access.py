"""Who may do what: the policy's `rbac` section, compiled so that a check takes a few microseconds.

Rules:
1. Nothing is allowed that no grant allows: unknown principals, permissions and malformed namespaces are refused.
2. A grant on a namespace covers it and everything below, label by label; a grant on `*` covers every namespace, and
   alone covers what is not about a namespace (such as `policy.reload`).
3. A principal has its own grants, those of its groups, and those of the roles of both, and of the roles that these
   include. A token's claims bring the groups that list them.
4. A grant with conditions holds for the cells that they name (`memplane/policy/cells.py`), and only of permissions that
   are about memories: `*` stands for these alone there.
5. What one `deny` covers, no `allow` gives.
6. The bootstrap administrator, when configured, may do everything, with an `rbac` section or without, so that no policy
   can lock everybody out. Without an `rbac` section it is the only one who may do anything.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memplane.identity import Identity, Method
from memplane.policy.cells import ALL_CELLS, mask
from memplane.policy.codec import InvalidPolicy
from memplane.policy.effective import lineage
from memplane.policy.names import is_namespace
from memplane.policy.rbac import (
    BOOTSTRAP_ADMIN,
    MEMORY_PERMISSIONS,
    PERMISSIONS,
    TOKEN_PRINCIPAL,
    CallLimits,
    Grant,
    Rbac,
)

API_KEY_BYTES = 36
"""Random bytes that make an API key: 4 for its id, 32 for its secret."""
MAX_API_KEY_LENGTH = 256
EVERY_NAMESPACE = "*"
COVERINGS_KEPT = 10_000
"""So many namespaces asked about are kept with what covers them, the latest. `bench/access.py` tells what it saves."""

_KNOWN = frozenset(PERMISSIONS)
_Table = Mapping[str, tuple[int, int]]  # namespace → cells allowed, cells denied
_Rules = Mapping[str, _Table]  # permission → table; those of one role, group or principal


@dataclass(frozen=True, slots=True)
class KnownApiKey:
    """An API key that stands beside the policy. `expire_time_us`: microseconds since 1970 UTC; None: no end."""

    sha256: str
    principal_id: str
    expire_time_us: int | None = None
    key_id: str = ""


class AccessIndex:
    """The compiled rules. Immutable; safe to share.

    `bootstrap_admin_sha256` is the hash of the bootstrap administrator's API key; None: there is none. `api_keys` are
    known beside those of the `rbac` section; one whose principal is not in it is nobody's.

    Raises:
        InvalidPolicy: A role is named that does not exist.
    """

    def __init__(
        self, rbac: Rbac | None, bootstrap_admin_sha256: str | None, api_keys: Sequence[KnownApiKey] = ()
    ) -> None:
        rules = rbac if rbac is not None else Rbac()
        self._holdings = _Holdings(rules)
        self._of_principal = {name: self._holdings.of_principal(name) for name in rules.principals}
        self._of_claim = self._holdings.by_claim()
        self._limits = {name: who.limits for name, who in rules.principals.items() if who.limits is not None}
        self._common_limits = rules.limits
        self._keys = {key.sha256: key for key in api_keys if key.principal_id in rules.principals}
        listed = (KnownApiKey(sha, name) for name, who in rules.principals.items() for sha in who.api_key_sha256)
        self._keys |= {key.sha256: key for key in listed}
        self._by_spiffe_id = {each: name for name, who in rules.principals.items() for each in who.spiffe_ids}
        self._by_subject = {each: name for name, who in rules.principals.items() for each in who.token_subjects}
        self._covering = lru_cache(COVERINGS_KEPT)(_covering)
        self._has_bootstrap_admin = bootstrap_admin_sha256 is not None
        if bootstrap_admin_sha256 is not None:
            self._keys[bootstrap_admin_sha256] = KnownApiKey(bootstrap_admin_sha256, BOOTSTRAP_ADMIN)

    def by_api_key(self, api_key: str, now_us: int) -> Identity | None:
        """Whose key this is; None: nobody's, or it has ended."""
        if len(api_key) > MAX_API_KEY_LENGTH:
            return None
        known = self._keys.get(hash_api_key(api_key))
        if known is None or (known.expire_time_us is not None and known.expire_time_us <= now_us):
            return None
        return Identity(known.principal_id, Method.API_KEY, frozenset(), known.expire_time_us)

    def by_spiffe_id(self, spiffe_id: str) -> Identity | None:
        """Whose certificate this is, by the id in it; None: nobody's."""
        name = self._by_spiffe_id.get(spiffe_id)
        return None if name is None else Identity(name, Method.CERTIFICATE)

    def by_token(self, subject: str, claims: frozenset[str], expire_time_us: int) -> Identity | None:
        """Whose token this is: the principal that lists its subject, else `token:SUBJECT` if a claim brings a group.

        None: nobody's. The token has been verified before.
        """
        name = self._by_subject.get(subject)
        if name is None and self._of_claim.keys().isdisjoint(claims):
            return None
        return Identity(name or f"{TOKEN_PRINCIPAL}{subject}", Method.TOKEN, claims, expire_time_us)

    def limits_of(self, identity: Identity) -> CallLimits:
        """How much it may ask of one data plane; the bootstrap administrator as much as it likes."""
        if identity.principal_id == BOOTSTRAP_ADMIN:
            return CallLimits()
        return self._limits.get(identity.principal_id, self._common_limits)

    def allows(self, identity: Identity, permission: str, namespace: str | None) -> bool:
        """Whether it may do any of it: with conditions, for some memories; see `cells`."""
        return self.cells(identity, permission, namespace) != 0

    def cells(self, identity: Identity, permission: str, namespace: str | None) -> int:
        """The cells for which it may; 0: none, ALL_CELLS: all.

        `namespace` None: the matter is not about a namespace, only grants on `*` cover it.
        """
        covering = self._covering(namespace)
        if permission not in _KNOWN or not covering:
            return 0
        if identity.principal_id == BOOTSTRAP_ADMIN:
            return ALL_CELLS if self._has_bootstrap_admin else 0
        held = self._of_principal.get(identity.principal_id, ())
        return _decide(self._with_claims(held, identity.claims) if identity.claims else held, permission, covering)

    def _with_claims(self, held: tuple[_Rules, ...], claims: frozenset[str]) -> tuple[_Rules, ...]:
        brought = self._of_claim.keys() & claims
        return (*held, *(rules for claim in brought for rules in self._of_claim[claim]))


def new_api_key(random_bytes: bytes) -> str:
    """`mpk_`, an id of 8 hex digits, `_`, and 43 characters of base64url, from API_KEY_BYTES random bytes."""
    if len(random_bytes) != API_KEY_BYTES:
        raise ValueError(f"{len(random_bytes)} random bytes; an API key takes {API_KEY_BYTES}")
    secret = base64.urlsafe_b64encode(random_bytes[4:]).rstrip(b"=").decode("ascii")
    return f"mpk_{random_bytes[:4].hex()}_{secret}"


def key_id_of(api_key: str) -> str:
    """The public id of a key that `new_api_key` made: the 8 hex digits after `mpk_`."""
    return api_key.split("_", 2)[1]


def hash_api_key(api_key: str) -> str:
    """SHA-256 of the whole key as 64 hex digits. A key has 256 random bits, so that no salt or stretching is needed."""
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).hexdigest()


def role_closure(rbac: Rbac, roles: Iterable[str]) -> Iterator[str]:
    """The roles and all that they include, each once; cycles end.

    Raises:
        InvalidPolicy: One does not exist.
    """
    pending, seen = list(roles), set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        if name not in rbac.roles:
            raise InvalidPolicy(f"rbac: role {name!r} does not exist")
        seen.add(name)
        yield name
        pending.extend(rbac.roles[name].includes)


def permissions_of(grant: Grant) -> Iterable[str]:
    """The permissions that a grant gives or takes: `*` is all of them; with conditions, those about memories."""
    if "*" not in grant.permissions:
        return grant.permissions
    return MEMORY_PERMISSIONS if grant.is_conditional else PERMISSIONS


def cells_of(grant: Grant) -> int:
    """The cells that a grant holds for."""
    return mask(grant.layers, grant.kinds, grant.sensitivities)


class _Holdings:
    """The rules of each role and group, shared by all who hold them: memory grows with grants, not with pairs."""

    def __init__(self, rbac: Rbac):
        self._rbac = rbac
        self._of_role = {name: _rules(role.grants) for name, role in rbac.roles.items()}
        self._of_group = {name: self._held(group.grants, group.roles) for name, group in rbac.groups.items()}
        self._groups_of: dict[str, list[str]] = {}
        for name, group in rbac.groups.items():
            for member in group.members:
                self._groups_of.setdefault(member, []).append(name)

    def of_principal(self, name: str) -> tuple[_Rules, ...]:
        """All that it holds without a token's claims."""
        principal = self._rbac.principals[name]
        groups = [rules for group in self._groups_of.get(name, ()) for rules in self._of_group[group]]
        return _each_once([*self._held(principal.grants, principal.roles), *groups])

    def by_claim(self) -> dict[str, tuple[_Rules, ...]]:
        """What each claim brings."""
        brought: dict[str, list[_Rules]] = {}
        for name, group in self._rbac.groups.items():
            for claim in group.claims:
                brought.setdefault(claim, []).extend(self._of_group[name])
        return {claim: _each_once(rules) for claim, rules in brought.items()}

    def _held(self, grants: Iterable[Grant], roles: Iterable[str]) -> tuple[_Rules, ...]:
        return _each_once([_rules(grants), *(self._of_role[name] for name in role_closure(self._rbac, roles))])


def _each_once(rules: Iterable[_Rules]) -> tuple[_Rules, ...]:
    return tuple({id(each): each for each in rules if each}.values())


def _covering(namespace: str | None) -> tuple[str, ...]:
    """The namespaces whose grants cover this one; None: what `*` alone covers; empty: it is malformed."""
    if namespace is None:
        return (EVERY_NAMESPACE,)
    return (*lineage(namespace), EVERY_NAMESPACE) if is_namespace(namespace) else ()


def _decide(held: tuple[_Rules, ...], permission: str, covering: tuple[str, ...]) -> int:
    allowed = denied = 0
    for rules in held:
        table = rules.get(permission)
        if table is None:
            continue
        for found in map(table.get, covering):
            if found is not None:
                allowed |= found[0]
                denied |= found[1]
    return allowed & ~denied


def _rules(grants: Iterable[Grant]) -> _Rules:
    tables: dict[str, dict[str, tuple[int, int]]] = {}
    for grant in grants:
        cells = cells_of(grant)
        gives, takes = (cells, 0) if grant.effect == "allow" else (0, cells)
        for permission in permissions_of(grant):
            table = tables.setdefault(permission, {})
            allowed, denied = table.get(grant.namespace, (0, 0))
            table[grant.namespace] = (allowed | gives, denied | takes)
    return tables
