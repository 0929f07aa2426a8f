"""Who may do what: the policy's `rbac` section, compiled so that a check takes a few microseconds.

Rules:
1. Nothing is allowed that no grant allows: unknown principals, permissions and malformed namespaces are refused.
2. A grant on a namespace covers it and everything below, label by label; a grant on `*` covers every namespace, and
   alone covers what is not about a namespace (such as `policy.reload`).
3. A principal has its own grants and those of its roles, and of the roles that these include.
4. One `deny` that covers the namespace beats every `allow`.
5. The bootstrap administrator, when configured, may do everything, with an `rbac` section or without, so that no policy
   can lock everybody out. Without an `rbac` section it is the only one who may do anything.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping

from memplane.policy.codec import InvalidPolicy
from memplane.policy.effective import lineage
from memplane.policy.names import is_namespace
from memplane.policy.rbac import BOOTSTRAP_ADMIN, PERMISSIONS, Grant, Principal, Rbac

API_KEY_BYTES = 36
"""Random bytes that make an API key: 4 for its id, 32 for its secret."""
MAX_API_KEY_LENGTH = 256
EVERY_NAMESPACE = "*"

_BITS = {permission: 1 << place for place, permission in enumerate(PERMISSIONS)}
_ALL_BITS = (1 << len(PERMISSIONS)) - 1
_NONE = (0, 0)
_Table = Mapping[str, tuple[int, int]]  # namespace → bits allowed, bits denied


class AccessIndex:
    """The compiled rules. Immutable; safe to share.

    `bootstrap_admin_sha256` is the hash of the bootstrap administrator's API key; None: there is none.

    Raises:
        InvalidPolicy: A role is named that does not exist.
    """

    def __init__(self, rbac: Rbac | None, bootstrap_admin_sha256: str | None) -> None:
        rules = rbac if rbac is not None else Rbac()
        own_tables = {name: _table(role.grants) for name, role in rules.roles.items()}
        self._tables: dict[str, tuple[_Table, ...]] = {
            name: _tables_of(principal, rules, own_tables) for name, principal in rules.principals.items()
        }
        self._principals = {key: name for name, who in rules.principals.items() for key in who.api_key_sha256}
        self._has_bootstrap_admin = bootstrap_admin_sha256 is not None
        if bootstrap_admin_sha256 is not None:
            self._principals[bootstrap_admin_sha256] = BOOTSTRAP_ADMIN

    def principal_of(self, api_key: str) -> str | None:
        """Id of the principal whose key this is; None: nobody's."""
        if len(api_key) > MAX_API_KEY_LENGTH:
            return None
        return self._principals.get(hash_api_key(api_key))

    def allows(self, principal_id: str, permission: str, namespace: str | None) -> bool:
        """Whether the principal may; `namespace` None: the matter is not about a namespace, only `*` covers it."""
        bit = _BITS.get(permission)
        if bit is None or not (namespace is None or is_namespace(namespace)):
            return False
        if principal_id == BOOTSTRAP_ADMIN:
            return self._has_bootstrap_admin
        covering = [EVERY_NAMESPACE] if namespace is None else [*lineage(namespace), EVERY_NAMESPACE]
        return _decide(self._tables.get(principal_id, ()), bit, covering)


def new_api_key(random_bytes: bytes) -> str:
    """`mpk_`, an id of 8 hex digits, `_`, and 43 characters of base64url, from API_KEY_BYTES random bytes."""
    if len(random_bytes) != API_KEY_BYTES:
        raise ValueError(f"{len(random_bytes)} random bytes; an API key takes {API_KEY_BYTES}")
    secret = base64.urlsafe_b64encode(random_bytes[4:]).rstrip(b"=").decode("ascii")
    return f"mpk_{random_bytes[:4].hex()}_{secret}"


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


def _decide(tables: tuple[_Table, ...], bit: int, covering: list[str]) -> bool:
    allowed = False
    for table in tables:
        for name in covering:
            allow, deny = table.get(name, _NONE)
            if deny & bit:
                return False
            if allow & bit:
                allowed = True
    return allowed


def _tables_of(principal: Principal, rbac: Rbac, own_tables: Mapping[str, _Table]) -> tuple[_Table, ...]:
    """Tables are shared between the principals of a role, never copied: memory grows with grants, not with pairs."""
    tables = [_table(principal.grants), *(own_tables[name] for name in role_closure(rbac, principal.roles))]
    return tuple(table for table in tables if table)


def _table(grants: Iterable[Grant]) -> _Table:
    table: dict[str, tuple[int, int]] = {}
    for grant in grants:
        bits = 0
        for permission in grant.permissions:
            bits |= _ALL_BITS if permission == "*" else _BITS[permission]
        allow, deny = table.get(grant.namespace, _NONE)
        table[grant.namespace] = (allow | bits, deny) if grant.effect == "allow" else (allow, deny | bits)
    return table
