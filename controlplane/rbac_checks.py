"""What must hold between the parts of an `rbac` section; each problem with the path where it stands."""

from collections.abc import Iterator
from typing import NamedTuple

from controlplane.diagnose import Path, did_you_mean, shorten
from controlplane.reference import differences
from memplane.identity import Identity, Method
from memplane.policy.access import AccessIndex
from memplane.policy.rbac import TOKEN_PRINCIPAL, Rbac

MAX_INCLUDES = 9
"""Longest chain of includes; as many as casbin follows, so that the same rules mean the same there."""
ADMINISTRATION = "policy.reload"


class Problem(NamedTuple):
    """One problem within the section; `path` starts at `rbac`."""

    code: str
    message: str
    path: Path


def rbac_problems(rbac: Rbac, *, bootstrap_admin: bool) -> list[Problem]:
    """Roles and principals that do not exist, cycles and long chains of roles, credentials of two, no administrator."""
    problems = [*_unknown_roles(rbac), *_unknown_members(rbac), *_shared_credentials(rbac), *_chains(rbac)]
    if not problems and not bootstrap_admin and not administrators(rbac):
        message = (
            f"nobody with an API key, a certificate or a token may {ADMINISTRATION} on '*', and no bootstrap "
            "administrator is configured"
        )
        return [Problem("NO_ADMINISTRATOR", message, ("rbac",))]
    return problems or list(_second_opinion(rbac))


def administrators(rbac: Rbac) -> list[str]:
    """Who may reload policy and is recognised by something in the section, in the order of names.

    Principals, and groups whose claims make any bearer of such a token one. Created API keys stand elsewhere.
    """
    index = AccessIndex(rbac, None)
    principals = [
        name
        for name, who in rbac.principals.items()
        if (who.api_key_sha256 or who.spiffe_ids or who.token_subjects)
        and index.allows(Identity(name), ADMINISTRATION, None)
    ]
    groups = [
        f"group {name}"
        for name, group in rbac.groups.items()
        if any(index.allows(_bearer(claim), ADMINISTRATION, None) for claim in group.claims)
    ]
    return sorted(principals) + sorted(groups)


def _bearer(claim: str) -> Identity:
    """Somebody whom no principal lists, with a token that has one claim."""
    return Identity(TOKEN_PRINCIPAL, Method.TOKEN, frozenset({claim}))


def _second_opinion(rbac: Rbac) -> Iterator[Problem]:
    """That casbin reads the rules otherwise than the index that would serve: a defect, so they must not serve."""
    for question in differences(rbac)[:1]:
        asked = f"{question.permission} of {shorten(question.identity.principal_id)!r} in {question.namespace!r}"
        message = f"casbin decides {asked} otherwise than MemPlane does; report this defect with the section"
        yield Problem("ACCESS_DIFFERS", message, ("rbac",))


def _unknown_roles(rbac: Rbac) -> Iterator[Problem]:
    for name, role in rbac.roles.items():
        yield from _unknown(rbac, role.includes, ("rbac", "roles", name, "includes"))
    for name, group in rbac.groups.items():
        yield from _unknown(rbac, group.roles, ("rbac", "groups", name, "roles"))
    for name, principal in rbac.principals.items():
        yield from _unknown(rbac, principal.roles, ("rbac", "principals", name, "roles"))


def _unknown(rbac: Rbac, roles: tuple[str, ...], path: Path) -> Iterator[Problem]:
    for place, role in enumerate(roles):
        if role not in rbac.roles:
            message = f"role {shorten(role)!r} does not exist{did_you_mean(role, rbac.roles)}"
            yield Problem("UNKNOWN_ROLE", message, (*path, place))


def _unknown_members(rbac: Rbac) -> Iterator[Problem]:
    for name, group in rbac.groups.items():
        for place, member in enumerate(group.members):
            if member not in rbac.principals:
                message = f"principal {shorten(member)!r} does not exist{did_you_mean(member, rbac.principals)}"
                yield Problem("UNKNOWN_PRINCIPAL", message, ("rbac", "groups", name, "members", place))


_CREDENTIALS = {
    "api_key_sha256": ("DUPLICATE_API_KEY", "the API key"),
    "spiffe_ids": ("DUPLICATE_SPIFFE_ID", "the SPIFFE id"),
    "token_subjects": ("DUPLICATE_TOKEN_SUBJECT", "the token subject"),
}


def _shared_credentials(rbac: Rbac) -> Iterator[Problem]:
    for key, (code, what) in _CREDENTIALS.items():
        owners: dict[str, str] = {}
        for name, principal in rbac.principals.items():
            for place, credential in enumerate(getattr(principal, key)):
                owner = owners.setdefault(credential, name)
                if owner != name:
                    message = f"{what} is also that of principal {shorten(owner)!r}; each has one owner"
                    yield Problem(code, message, ("rbac", "principals", name, key, place))


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
