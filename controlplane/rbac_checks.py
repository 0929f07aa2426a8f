"""What must hold between the parts of an `rbac` section; each problem with the path where it stands."""

from collections.abc import Iterator
from typing import NamedTuple

from controlplane.diagnose import Path, did_you_mean, shorten
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.rbac import Rbac

MAX_INCLUDES = 9
"""Longest chain of includes; as many as casbin follows, so that the same rules mean the same there."""
ADMINISTRATION = "policy.reload"


class Problem(NamedTuple):
    """One problem within the section; `path` starts at `rbac`."""

    code: str
    message: str
    path: Path


def rbac_problems(rbac: Rbac, *, bootstrap_admin: bool) -> list[Problem]:
    """Roles that do not exist, cycles and long chains of roles, keys of two principals, nobody to administer."""
    problems = [*_unknown_roles(rbac), *_shared_keys(rbac), *_chains(rbac)]
    if not problems and not bootstrap_admin and not administrators(rbac):
        message = (
            f"no principal with an API key may {ADMINISTRATION} on '*', and no bootstrap administrator is configured"
        )
        return [Problem("NO_ADMINISTRATOR", message, ("rbac",))]
    return problems


def administrators(rbac: Rbac) -> list[str]:
    """Principals with an API key who may reload policy, in the order of names."""
    index = AccessIndex(rbac, None)
    return sorted(
        name
        for name, who in rbac.principals.items()
        if who.api_key_sha256 and index.allows(Identity(name), ADMINISTRATION, None)
    )


def _unknown_roles(rbac: Rbac) -> Iterator[Problem]:
    for name, role in rbac.roles.items():
        yield from _unknown(rbac, role.includes, ("rbac", "roles", name, "includes"))
    for name, principal in rbac.principals.items():
        yield from _unknown(rbac, principal.roles, ("rbac", "principals", name, "roles"))


def _unknown(rbac: Rbac, roles: tuple[str, ...], path: Path) -> Iterator[Problem]:
    for place, role in enumerate(roles):
        if role not in rbac.roles:
            message = f"role {shorten(role)!r} does not exist{did_you_mean(role, rbac.roles)}"
            yield Problem("UNKNOWN_ROLE", message, (*path, place))


def _shared_keys(rbac: Rbac) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for name, principal in rbac.principals.items():
        for place, key in enumerate(principal.api_key_sha256):
            owner = owners.setdefault(key, name)
            if owner != name:
                message = f"the API key is also that of principal {shorten(owner)!r}; each key has one owner"
                yield Problem("DUPLICATE_API_KEY", message, ("rbac", "principals", name, "api_key_sha256", place))


def _chains(rbac: Rbac) -> Iterator[Problem]:
    """Cycles, each once, and chains above MAX_INCLUDES; every role is walked once."""
    heights: dict[str, int] = {}
    for name in rbac.roles:
        if name not in heights:
            yield from _walk(rbac, name, heights)


def _walk(rbac: Rbac, start: str, heights: dict[str, int]) -> Iterator[Problem]:
    """Depth first without recursion; fills `heights`: the number of includes in the longest chain below each role."""
    trail = [start]
    pending = [iter(rbac.roles[start].includes)]
    while trail:
        role = trail[-1]
        below = next(pending[-1], None)
        if below is None:
            yield from _leave(rbac, role, heights)
            trail.pop()
            pending.pop()
        elif below in trail:
            yield _cycle(rbac, [*trail[trail.index(below) :], below])
        elif below in rbac.roles and below not in heights:
            trail.append(below)
            pending.append(iter(rbac.roles[below].includes))


def _leave(rbac: Rbac, role: str, heights: dict[str, int]) -> Iterator[Problem]:
    heights[role] = max((heights.get(name, 0) + 1 for name in rbac.roles[role].includes), default=0)
    if heights[role] == MAX_INCLUDES + 1:
        message = f"the chain of includes from {shorten(role)!r} is longer than {MAX_INCLUDES}; flatten it"
        yield Problem("ROLE_CHAIN_TOO_LONG", message, ("rbac", "roles", role, "includes"))


def _cycle(rbac: Rbac, cycle: list[str]) -> Problem:
    last = cycle[-2]
    place = rbac.roles[last].includes.index(cycle[-1])
    shown = " → ".join(shorten(name) for name in cycle)
    return Problem("ROLE_CYCLE", f"roles include each other: {shown}", ("rbac", "roles", last, "includes", place))
