"""Random `rbac` sections and questions about them, for comparing deciders: names that nearly match are frequent."""

import random
from collections.abc import Sequence

from controlplane.reference import Question
from memplane.identity import Identity, Method
from memplane.policy.cells import KINDS, LAYERS, SENSITIVITIES
from memplane.policy.rbac import MEMORY_PERMISSIONS, PERMISSIONS, Grant, Group, Principal, Rbac, Role

NAMESPACES = (
    "dept",
    "dept.sales",
    "dept.salesforce",
    "dept.sales.x",
    "dept.sales.x.y",
    "dept.sale",
    "dept.sales-x",
    "dept.hr",
    "sales",
    "dep",
)
ODD_NAMESPACES = (None, "", "*", "dept.", "dept..sales", "DEPT.sales", "dept.sales.", "dept.sales\n", "dept.*")
ROLES = tuple(f"role-{number}" for number in range(6))
GROUPS = ("sales", "staff", "role-1", "ann")
PRINCIPALS = ("ann", "bob", "role-1", "sales")
CLAIMS = ("sales", "staff", "ann")
ASKED = (*PERMISSIONS, "memory.raed", "*", "")


def random_rbac(dice: random.Random) -> Rbac:
    """Roles that include later ones alone, so that there are no cycles; groups; denies; conditions."""
    return Rbac(
        roles={
            name: Role(grants=_grants(dice, 3), includes=_some(dice, ROLES[place + 1 :], 2))
            for place, name in enumerate(ROLES)
        },
        groups={
            name: Group(
                members=_some(dice, PRINCIPALS, 2),
                claims=_some(dice, CLAIMS, 2),
                roles=_some(dice, ROLES, 2),
                grants=_grants(dice, 2),
            )
            for name in _some(dice, GROUPS, 3)
        },
        principals={name: Principal(roles=_some(dice, ROLES, 2), grants=_grants(dice, 2)) for name in PRINCIPALS},
    )


def random_question(dice: random.Random) -> Question:
    """Mostly of what there is; sometimes of strangers, misspelt permissions and malformed namespaces."""
    name = dice.choice((*PRINCIPALS, "token:zoe", "stranger"))
    claims = frozenset(_some(dice, (*CLAIMS, "unknown"), 2)) if dice.random() < 0.4 else frozenset[str]()
    odd = dice.random() < 0.1
    return Question(
        Identity(name, Method.TOKEN, claims),
        dice.choice(ASKED),
        dice.choice(ODD_NAMESPACES if odd else NAMESPACES),
        dice.randint(1, len(LAYERS)),
        dice.randint(1, len(KINDS)),
        dice.randint(0, len(SENSITIVITIES) - 1),
    )


def _grants(dice: random.Random, most: int) -> tuple[Grant, ...]:
    return tuple(_grant(dice) for _ in range(dice.randint(0, most)))


def _grant(dice: random.Random) -> Grant:
    conditional = dice.random() < 0.4
    permissions = _some(dice, MEMORY_PERMISSIONS if conditional else PERMISSIONS, 4) or ("*",)
    return Grant(
        namespace=dice.choice((*NAMESPACES, "*")),
        permissions=permissions if dice.random() < 0.8 else ("*",),
        effect="deny" if dice.random() < 0.25 else "allow",
        layers=_some(dice, LAYERS, 3) if conditional else (),
        kinds=_some(dice, KINDS, 4) if conditional else (),
        sensitivities=_some(dice, SENSITIVITIES, 3) if conditional else (),
    )


def _some(dice: random.Random, of: Sequence[str], most: int) -> tuple:  # type: ignore[type-arg]  # of names of one type
    return tuple(dice.sample(of, min(dice.randint(0, most), len(of))))
