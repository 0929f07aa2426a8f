"""The `rbac` section: who is recognised by what, and which grants they hold."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator

from memplane.policy.names import KindName, LayerName, Positive, SensitivityName, check_namespace, problem
from memplane.policy.section import Section

PERMISSIONS = (
    "memory.read",
    "memory.write",
    "memory.forget",
    "share.propose",
    "share.approve",
    "review",
    "audit.read",
    "policy.reload",
    "policy.read",
    "maintenance",
)
MEMORY_PERMISSIONS = ("memory.read", "memory.write", "memory.forget", "share.propose", "share.approve", "review")
"""Those that are about memories, so that a grant of them may have conditions."""
BOOTSTRAP_ADMIN = "bootstrap-admin"
"""Principal id of the administrator whose key stands in the planes' configuration; no policy may name it."""
TOKEN_PRINCIPAL = "token:"  # noqa: S105 - the beginning of a name
"""What the ids of token bearers begin with whom no principal lists; no policy may name one."""

KEY_HASH = re.compile(r"[0-9a-f]{64}")
SPIFFE_ID = re.compile(r"spiffe://[a-z0-9._-]{1,255}(?:/[A-Za-z0-9._-]+)*")


def _check_permission(value: str) -> str:
    if value != "*" and value not in PERMISSIONS:
        raise problem(
            "unknown_permission", f"unknown permission {value[:80]!r}; known: {', '.join(PERMISSIONS)} and '*'"
        )
    return value


def _check_key_hash(value: str) -> str:
    if KEY_HASH.fullmatch(value) is None:  # the value is not shown: it may be the key itself
        raise problem("bad_key_hash", "not the SHA-256 of an API key: 64 hex digits in lower case")
    return value


def _check_spiffe_id(value: str) -> str:
    if len(value) > 2048 or SPIFFE_ID.fullmatch(value) is None:
        raise problem("bad_spiffe_id", f"{value[:80]!r} is no SPIFFE id, such as spiffe://bank.example/agents/sales")
    return value


def _check_principal_id(value: str) -> str:
    if value == BOOTSTRAP_ADMIN:
        raise problem("reserved_name", f"{value!r} is the bootstrap administrator; choose another name")
    if value.startswith(TOKEN_PRINCIPAL):
        told = f"{value[:80]!r} is what bearers of tokens are called; list their subjects in token_subjects"
        raise problem("reserved_name", told)
    return value


KeyHash = Annotated[
    str, AfterValidator(_check_key_hash), WithJsonSchema({"type": "string", "pattern": f"^{KEY_HASH.pattern}$"})
]
SpiffeId = Annotated[
    str, AfterValidator(_check_spiffe_id), WithJsonSchema({"type": "string", "pattern": f"^{SPIFFE_ID.pattern}$"})
]
Permission = Annotated[
    str, AfterValidator(_check_permission), WithJsonSchema({"type": "string", "enum": [*PERMISSIONS, "*"]})
]
PrincipalId = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_principal_id)]


class Grant(Section):
    """Permissions on a namespace and everything below it; `deny` overrides any `allow`. `*` is every namespace.

    `layers`, `kinds` and `sensitivities` are conditions: it holds for memories of these alone; empty: of any. With
    conditions, the permission `*` stands for those that are about memories.
    """

    namespace: str
    permissions: Annotated[tuple[Permission, ...], Field(min_length=1)]
    effect: Literal["allow", "deny"] = "allow"
    layers: tuple[LayerName, ...] = ()
    kinds: tuple[KindName, ...] = ()
    sensitivities: tuple[SensitivityName, ...] = ()

    @field_validator("namespace")
    @classmethod
    def _subtree(cls, value: str) -> str:
        return value if value == "*" else check_namespace(value)

    @model_validator(mode="after")
    def _conditions_name_memories(self) -> Self:
        """A condition on what is not about memories would mean nothing, or more than was meant."""
        stray = [each for each in self.permissions if each != "*" and each not in MEMORY_PERMISSIONS]
        if self.is_conditional and stray:
            told = f"layers, kinds and sensitivities say nothing of {', '.join(stray)}, which is not about memories"
            raise problem("condition_without_memory", f"{told}; give it a grant of its own")
        return self

    @property
    def is_conditional(self) -> bool:
        """Whether it holds for some memories alone."""
        return bool(self.layers or self.kinds or self.sensitivities)


class Role(Section):
    """A named set of grants, and the roles it includes."""

    grants: tuple[Grant, ...] = ()
    includes: tuple[str, ...] = ()


class CallLimits(Section):
    """How much one principal may ask of one data plane; None: as much as it likes.

    `calls_per_s` with bursts of `burst` calls (None: one second's worth); `concurrency` calls at once.
    """

    calls_per_s: Positive | None = None
    burst: Annotated[int, Field(ge=1)] | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None


class Group(Section):
    """Principals that share roles and grants: those named, and bearers of a token whose claim has one of `claims`."""

    members: tuple[PrincipalId, ...] = ()
    claims: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    roles: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()


class Principal(Section):
    """Somebody who calls: recognised by an API key's hash (SHA-256), a certificate's SPIFFE id or a token's subject."""

    api_key_sha256: tuple[KeyHash, ...] = ()
    spiffe_ids: tuple[SpiffeId, ...] = ()
    token_subjects: tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] = ()
    roles: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    limits: CallLimits | None = None


class Rbac(Section):
    """Who may do what. Nothing is allowed that no grant allows. `limits` hold for principals without their own."""

    roles: dict[str, Role] = Field(default_factory=dict)
    groups: dict[str, Group] = Field(default_factory=dict)
    principals: dict[PrincipalId, Principal] = Field(default_factory=dict)
    limits: CallLimits = Field(default_factory=CallLimits)
