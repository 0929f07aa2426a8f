"""Golden cases: what a policy must come to, told beside it, so that a change of it that breaks a promise is refused.

Three sorts: who may (`access`), what becomes of a text (`write`), which hit comes first (`order`). The models say what
a case may hold; `difference` compares what it expects with what came. What came is found by the data plane's own code
(`dataplane/judges/policy.py`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from memplane.policy.names import KindName, LayerName, Namespace, SensitivityName, SourceName, Unit, problem
from memplane.policy.rbac import Permission, SpiffeId
from memplane.policy.section import Section

MAX_CASES = 1000
MAX_SECONDS = 2.0
"""Processor time that the cases of a policy set may take together."""
TOLERANCE = 0.005
"""Scores are compared to two decimals."""

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Answer = Literal["allow", "deny", "partly"]
ActionName = Literal[
    "CREATED", "KEPT_SHORT_TERM", "KEPT_WORKING", "REJECTED", "PENDING_REVIEW", "QUARANTINED"
]  # fmt: skip


class TokenGiven(Section):
    """The bearer of a token: its subject, and the values of its groups claim."""

    subject: Annotated[str, Field(min_length=1, max_length=256)]
    claims: tuple[str, ...] = ()


class AccessGiven(Section):
    """Who asks for what: one of `principal`, `token` and `spiffe_id`; of `layer`, `kind`, `sensitivity` none is any.

    Without a namespace: a matter that is not about one, such as `policy.reload`.
    """

    principal: Name | None = None
    token: TokenGiven | None = None
    spiffe_id: SpiffeId | None = None
    permission: Permission
    namespace: Namespace | None = None
    layer: LayerName | None = None
    kind: KindName | None = None
    sensitivity: SensitivityName | None = None

    @model_validator(mode="after")
    def _one_caller(self) -> "AccessGiven":
        if sum(who is not None for who in (self.principal, self.token, self.spiffe_id)) != 1:
            raise problem("one_caller", "exactly one of principal, token and spiffe_id tells who asks")
        if self.permission == "*":
            raise problem("one_permission", "a case asks for one permission; write one case for each")
        return self


class AccessCase(Section):
    """`allow`: all that is given may be done, `deny`: nothing of it, `partly`: some layers, kinds or sensitivities."""

    name: Name
    given: AccessGiven
    expect: Answer


class WriteGiven(Section):
    """A text to write. `model_score`: the trained model's opinion; without one it could not be asked.

    `session`: it has a session; `shared`: it is meant for the shared pool; `layer`: the layer that its writer hints at.
    """

    text: Text
    namespace: Namespace | None = None
    source: SourceName = "USER"
    kind: KindName = "FACT"
    layer: LayerName | None = None
    session: bool = False
    shared: bool = False
    model_score: Unit | None = None


class WriteExpect(Section):
    """What is to come of it; what is not named may be anything, one at least is named.

    `rule_score` is the opinion of the rules alone (0: none matched). `text` is the text as kept. `reasons` are codes
    that must be among the decision's. `sensitive` are the types masked, `signals` the signs of an attack: all of them.
    """

    action: ActionName | None = None
    layer: LayerName | None = None
    score: Unit | None = None
    rule_score: Unit | None = None
    text: str | None = None
    reasons: tuple[str, ...] | None = None
    sensitive: tuple[str, ...] | None = None
    suspicion: Unit | None = None
    signals: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _something(self) -> "WriteExpect":
        if not self.model_fields_set:
            raise problem("nothing_expected", f"expect at least one of {', '.join(WriteExpect.model_fields)}")
        return self


class WriteCase(Section):
    """What becomes of a text, before it is compared with other memories."""

    name: Name
    given: WriteGiven
    expect: WriteExpect


class HitGiven(Section):
    """A memory as a search has found it: relevance by meaning and by words, age, uses; unknown where not given.

    `uses` are its uses in the window and in all. Without `last_used_days` (days since the last one) it was never used.
    """

    vector: Unit | None = None
    text: Unit | None = None
    age_days: Annotated[float, Field(ge=0.0, le=36_500.0)] | None = None
    uses: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    last_used_days: Annotated[float, Field(ge=0.0, le=36_500.0)] | None = None
    source: SourceName = "USER"
    kind: KindName = "FACT"
    category: str = ""
    content: Annotated[str, Field(max_length=4000)] = ""


class OrderGiven(Section):
    """A search: its query and task, and the hits by a name of their own."""

    namespace: Namespace | None = None
    query: Annotated[str, Field(max_length=4000)] = ""
    task_type: str = ""
    hits: Annotated[dict[Name, HitGiven], Field(min_length=1, max_length=100)]


class OrderCase(Section):
    """`expect`: the names of all hits that are returned, best first; those below `min_confidence` are not."""

    name: Name
    given: OrderGiven
    expect: tuple[Name, ...]

    @model_validator(mode="after")
    def _known(self) -> "OrderCase":
        unknown = [name for name in self.expect if name not in self.given.hits]
        if unknown:
            raise problem("unknown_hit", f"{unknown[0][:80]!r} is none of the hits given")
        return self


class CaseFile(Section):
    """What a file of cases (`*.test.yaml`) holds."""

    access: tuple[AccessCase, ...] = ()
    write: tuple[WriteCase, ...] = ()
    order: tuple[OrderCase, ...] = ()


Case = AccessCase | WriteCase | OrderCase
SORTS: Mapping[str, type[AccessCase | WriteCase | OrderCase]] = {
    "access": AccessCase,
    "write": WriteCase,
    "order": OrderCase,
}


def difference(expected: Any, came: Any) -> dict[str, tuple[Any, Any]]:
    """What differs: key (or "" for the whole) → what was expected and what came, both plain JSON; nothing: it holds.

    `expected` is the plain `expect` of a case, with the keys alone that were set.
    """
    if not isinstance(expected, Mapping):
        return {} if expected == came else {"": (expected, came)}
    return {key: (value, came.get(key)) for key, value in expected.items() if not _holds(key, value, came.get(key))}


def _holds(key: str, expected: Any, came: Any) -> bool:
    if isinstance(expected, float | int) and not isinstance(expected, bool):
        return isinstance(came, float | int) and abs(expected - came) <= TOLERANCE
    if key == "reasons":
        return set(expected) <= set(came or ())
    if isinstance(expected, list):
        return sorted(expected) == sorted(came or ())
    return bool(expected == came)
