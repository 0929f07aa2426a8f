"""Two tenants whose namespaces nearly have each other's names, their principals, and who of them may do what.

`may` is written from the rules of the `rbac` section alone, over plain grants: it shares nothing with the code that it
is held against.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memplane.policy.access import hash_api_key
from tests.integration.harness import ADMIN_KEY

TENANTS = ("dept.sales", "dept.salesforce")
ABOVE = "dept"
EVERY = "*"
READ, WRITE, FORGET, SHARE = "memory.read", "memory.write", "memory.forget", "share.propose"
REVIEW, MAINTENANCE = "review", "maintenance"


@dataclass(frozen=True)
class Right:
    """A grant. Empty conditions: for memories of any kind, layer or sensitivity."""

    namespace: str
    permissions: tuple[str, ...]
    allow: bool = True
    layers: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sensitivities: tuple[str, ...] = ()

    def section(self) -> dict[str, Any]:
        """As a policy document has it."""
        conditions = {"layers": self.layers, "kinds": self.kinds, "sensitivities": self.sensitivities}
        plain = {name: list(values) for name, values in conditions.items() if values}
        effect = "allow" if self.allow else "deny"
        return {"namespace": self.namespace, "permissions": list(self.permissions), "effect": effect, **plain}

    def covers(self, permission: str, namespace: str | None) -> bool:
        """Whether it speaks of this at all."""
        if permission not in self.permissions and EVERY not in self.permissions:
            return False
        if self.namespace == EVERY or namespace is None:
            return self.namespace == EVERY
        return namespace == self.namespace or namespace.startswith(self.namespace + ".")

    def holds_for(self, cell: "Cell") -> bool:
        """Whether a memory meets its conditions."""
        pairs = ((self.layers, cell.layer), (self.kinds, cell.kind), (self.sensitivities, cell.sensitivity))
        return all(not wanted or value in wanted for wanted, value in pairs)


@dataclass(frozen=True)
class Cell:
    """What conditions look at."""

    layer: str
    kind: str
    sensitivity: str


@dataclass(frozen=True)
class Principal:
    """Somebody who calls. `tenant` "" for whom no tenant is his own."""

    name: str
    tenant: str
    rights: tuple[Right, ...]
    own_key: str = ""

    @property
    def key(self) -> str:
        """His API key."""
        return self.own_key or f"mpk_00000000_{self.name}-of-the-leak-test"


ADMIN = Principal("bootstrap-admin", "", (Right(EVERY, (EVERY,)),), ADMIN_KEY)
"""May do everything; stands in no policy."""


@dataclass
class World:
    """The principals and the namespaces; `withdrawn`: rights of principals, by name, that a reload took away."""

    conditions: bool
    labels: Mapping[str, str]
    withdrawn: dict[str, tuple[Right, ...]] = field(default_factory=dict)

    @property
    def principals(self) -> tuple[Principal, ...]:
        """All of them but the administrator."""
        return (*(each for root in TENANTS for each in self._of(root)), Principal("nobody", "", ()))

    def _of(self, root: str) -> Iterator[Principal]:
        other = next(name for name in TENANTS if name != root)
        name = root.replace(".", "-")
        secret = Right(f"{root}.secret", (READ,), allow=False)
        yield Principal(f"{name}-reader", root, (Right(root, (READ,)), secret))
        yield Principal(f"{name}-deep", root, (Right(f"{root}.x", (READ, WRITE)),))
        yield Principal(f"{name}-writer", root, (Right(root, (READ, WRITE, FORGET, SHARE, REVIEW)),))
        yield Principal(f"{name}-blind", root, (Right(root, (WRITE,)), Right(f"{root}.x", (FORGET,))))
        pool = (Right(ABOVE, (READ, WRITE, SHARE)), Right(other, (EVERY,), allow=False))
        yield Principal(f"{name}-pool", root, (*pool, secret))
        yield Principal(f"{name}-operator", root, (Right(root, (READ, MAINTENANCE)),))
        if self.conditions:
            facts = Right(root, (READ,), kinds=("FACT", "PREFERENCE"))
            open_ones = Right(root, (READ,), allow=False, sensitivities=("CONFIDENTIAL", "RESTRICTED"))
            yield Principal(f"{name}-facts", root, (facts, open_ones))
            yield Principal(f"{name}-lasting", root, (Right(root, (READ,), layers=("LONG_TERM", "KNOWLEDGE")),))

    def namespaces_of(self, root: str) -> tuple[str, ...]:
        """Where a tenant's memories lie; the last has a marker for a label."""
        return (root, f"{root}.x", f"{root}.x.deep", f"{root}.secret", f"{root}.x.{self.labels[root]}")

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Where memories lie at all."""
        return (ABOVE, *(name for root in TENANTS for name in self.namespaces_of(root)))

    def rights_of(self, principal: Principal) -> tuple[Right, ...]:
        """What he has now."""
        gone = self.withdrawn.get(principal.name, ())
        return tuple(right for right in principal.rights if right not in gone)

    def may(self, principal: Principal, permission: str, namespace: str | None, cell: Cell | None = None) -> bool:
        """Whether he may, with a memory of this cell; None: with some memory at least, as far as one can tell."""
        covering = [right for right in self.rights_of(principal) if right.covers(permission, namespace)]
        allowed = [right for right in covering if right.allow and (cell is None or right.holds_for(cell))]
        denied = [right for right in covering if not right.allow and _denies(right, cell)]
        return bool(allowed) and not denied

    def rbac(self) -> dict[str, Any]:
        """The `rbac` section."""
        principals = {
            each.name: {
                "api_key_sha256": [hash_api_key(each.key)],
                "grants": [right.section() for right in self.rights_of(each)],
            }
            for each in self.principals
        }
        return {"principals": principals}

    def take_away(self, draw: random.Random) -> str:
        """Takes a right from somebody; whose it was."""
        victim = draw.choice([each for each in self.principals if each.rights])
        self.withdrawn[victim.name] = (draw.choice([right for right in victim.rights if right.allow]),)
        return victim.name

    def give_back(self) -> None:
        """Everybody has again what he had."""
        self.withdrawn.clear()


def _denies(right: Right, cell: Cell | None) -> bool:
    if cell is None:
        return not (right.layers or right.kinds or right.sensitivities)
    return right.holds_for(cell)


def near_misses(draw: random.Random, names: Sequence[str]) -> str:
    """A name that is nearly one of these, legal or not."""
    name = draw.choice(names)
    return draw.choice(
        (
            name.upper(),
            f"{name}.",
            f".{name}",
            name.replace(".", "..", 1),
            f"{name}x",
            name[:-1],
            f"{name}.nowhere",
            f"{name}force",
            name.replace(".", "-"),
            f"{name}.*",
            f"{name} ",
            f"{name}\u200b",
            "",
            "*",
            ".",
        )
    )
