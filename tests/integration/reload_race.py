"""Policies that are swapped beside checkers, with answers worked out beforehand for each version.

A reload is what a data plane does: the signed snapshot is opened in a thread and put into the holder on the event loop.
A request is what its pipelines do: it takes the snapshot once, knows its caller by the key, and asks several times with
the loop running on in between. The answers are worked out from the rules by a plain reading of them, not by the index.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dataplane.pipelines.caller import Caller
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from memplane.policy.access import hash_api_key
from memplane.policy.codec import to_json
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant, Principal, Rbac, Role
from memplane.policy.snapshot import PolicySnapshot, key_id, open_signed, sign
from memplane.v1 import policy_pb2

VERSIONS = 24
CHECKERS = 8
CHECKS_A_REQUEST = 10
PERMISSIONS = ("memory.read", "memory.write", "memory.forget")
NAMESPACES = tuple(
    f"{top}.{middle}.{agent}" for top in ("sales", "hr") for middle in ("east", "west") for agent in ("a", "b", "c")
)
SUBTREES = (*NAMESPACES, "sales", "hr", "sales.east", "sales.west", "hr.east", "hr.west", "*")

Question = tuple[str, str]  # permission, namespace
Answers = Mapping[tuple[str, str, str], bool]  # principal, permission, namespace
_KEY = Ed25519PrivateKey.generate()


@dataclass(frozen=True, slots=True)
class Version:
    """A signed policy and, for every principal and question, what it says."""

    signed: policy_pb2.SignedPolicySnapshot
    answers: Answers

    def open(self, generation: int) -> PolicySnapshot:
        """As a data plane opens it, which takes some milliseconds; its generation is put in afterwards."""
        opened = open_signed(self.signed, {key_id(_KEY.public_key()): _KEY.public_key()}, None)
        return PolicySnapshot(opened.version, generation, 0, opened.policies, opened.access)


@dataclass
class Count:
    """What was seen. `mixed`: requests some of whose answers were another version's than the one they told."""

    checks: int = 0
    wrong: int = 0
    requests: int = 0
    mixed: int = 0
    reloads: int = 0
    versions: set[str] = field(default_factory=set)


def principal(number: int) -> str:
    """Name of the principal of one checker, and its key."""
    return f"agent-{number}"


def versions(seed: int = 5, count: int = VERSIONS) -> dict[str, Version]:
    """Policies by version, drawn by the seed: about half of all questions change their answer from one to the next."""
    return {f"sha256:{number}": _version(random.Random(1_000 * seed + number), number) for number in range(count)}


async def race(known: Mapping[str, Version], reload_every_s: float, is_enough: Callable[[Count], bool]) -> Count:
    """Reloads beside CHECKERS checkers until it is enough."""
    holder, count = PolicyHolder(), Count()
    order = list(known.values())
    holder.swap(order[0].open(1), PolicyOrigin.CONTROL_PLANE, 0)
    checkers = [asyncio.create_task(_check(holder, known, number, count)) for number in range(CHECKERS)]
    now_s = asyncio.get_running_loop().time
    due_s = now_s()
    while not is_enough(count):
        due_s = max(due_s + reload_every_s, now_s())
        await asyncio.sleep(due_s - now_s())
        count.reloads += 1
        snapshot = await asyncio.to_thread(order[count.reloads % len(order)].open, 1 + count.reloads)
        holder.swap(snapshot, PolicyOrigin.CONTROL_PLANE, 0)
    for checker in checkers:
        checker.cancel()
    await asyncio.gather(*checkers, return_exceptions=True)
    return count


async def _check(holder: PolicyHolder, known: Mapping[str, Version], number: int, count: Count) -> None:
    name, dice = principal(number), random.Random(number)
    questions = [(permission, namespace) for permission in PERMISSIONS for namespace in NAMESPACES]
    while True:
        snapshot = holder.require()
        identity = snapshot.access.by_api_key(name, now_us=0)
        assert identity is not None
        caller, answers = Caller(identity, snapshot), known[snapshot.version].answers
        is_mixed = False
        for permission, namespace in dice.sample(questions, CHECKS_A_REQUEST):
            await asyncio.sleep(0)
            is_right = caller.may(permission, namespace) == answers[name, permission, namespace]
            count.checks += 1
            count.wrong += not is_right
            is_mixed = is_mixed or not is_right
        count.requests += 1
        count.mixed += is_mixed or caller.snapshot is not snapshot
        count.versions.add(snapshot.version)


def _version(dice: random.Random, number: int) -> Version:
    roles = {f"role-{name}": Role(grants=_grants(dice, 4)) for name in range(4)}
    principals = {
        principal(who): Principal(
            api_key_sha256=(hash_api_key(principal(who)),),
            roles=tuple(dice.sample(sorted(roles), 2)),
            grants=_grants(dice, 2),
        )
        for who in range(CHECKERS)
    }
    rbac = Rbac(roles=roles, principals=principals)
    message = policy_pb2.PolicySnapshot(
        version_info=f"sha256:{number}", generation=1, policy_json=to_json(PolicySet(rbac=rbac))
    )
    answers = {
        (name, permission, namespace): says(rbac, name, permission, namespace)
        for name in principals
        for permission in PERMISSIONS
        for namespace in NAMESPACES
    }
    return Version(sign(message, _KEY), answers)


def _grants(dice: random.Random, count: int) -> tuple[Grant, ...]:
    def effect() -> Literal["allow", "deny"]:
        return "deny" if dice.random() < 0.2 else "allow"

    return tuple(
        Grant(
            namespace=dice.choice(SUBTREES),
            permissions=tuple(dice.sample(PERMISSIONS, dice.randint(1, 2))),
            effect=effect(),
        )
        for _ in range(count)
    )


def says(rbac: Rbac, name: str, permission: str, namespace: str) -> bool:
    """What the rules say, read plainly: some grant allows it, and none denies it."""
    effects = {
        grant.effect for grant in _held(rbac, name) if permission in grant.permissions and _covers(grant, namespace)
    }
    return effects == {"allow"}


def _held(rbac: Rbac, name: str) -> Iterator[Grant]:
    yield from rbac.principals[name].grants
    for role in rbac.principals[name].roles:
        yield from rbac.roles[role].grants


def _covers(grant: Grant, namespace: str) -> bool:
    return grant.namespace == "*" or f"{namespace}.".startswith(f"{grant.namespace}.")
