"""The policy as a value: frozen, strict pydantic models of every section, with their defaults.

Both planes read these; only the control plane builds them from YAML. A value here is complete: every default is filled
in. `PolicySet` is what a snapshot carries; `dataplane` code asks `memplane.policy.effective` for the part that governs
one namespace.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from memplane.policy.degradation import DegradationPolicy
from memplane.policy.guard import GuardPolicy
from memplane.policy.names import FormatCheck, Namespace, Positive, SourceName, Unit, problem
from memplane.policy.rbac import Rbac
from memplane.policy.retrieve import RetrievePolicy
from memplane.policy.section import Section
from memplane.policy.sensitive import SensitivePolicy
from memplane.policy.write_rules import DEFAULT_AMOUNT_WORDS, AmountWord, WriteRule, default_rules


class WritePolicy(Section):
    """What is kept, and in which layer."""

    threshold: Unit = 0.7
    short_term_threshold: Unit = 0.3
    rule_weight: Unit = 0.4
    model_weight: Unit = 0.6
    max_length: Annotated[int, Field(ge=16, le=8192)] = 512
    dedup_similarity: Unit = 0.95
    dedup: bool = True
    contradiction_similarity: Unit = 0.9
    batch_interval_s: Positive = 0.1
    batch_size: Annotated[int, Field(ge=1, le=1000)] = 50
    rules: tuple[WriteRule, ...] = Field(default_factory=default_rules)
    max_content_bytes: Annotated[int, Field(ge=1, le=1_000_000)] = 65_536
    passing: bool = True
    format_checks: tuple[FormatCheck, ...] = ("date", "time", "percent", "amount", "name", "identifier")
    amount_words: tuple[AmountWord, ...] = DEFAULT_AMOUNT_WORDS

    @model_validator(mode="after")
    def _ordered(self) -> "WritePolicy":
        if self.short_term_threshold > self.threshold:
            raise problem(
                "thresholds_not_ordered",
                f"short_term_threshold {self.short_term_threshold} is above threshold {self.threshold}; "
                "it must be at or below it",
            )
        if self.rule_weight == 0 and self.model_weight == 0:
            raise problem("weights_all_zero", "rule_weight and model_weight are both 0; one of them must be above 0")
        return self


class DecayPolicy(Section):
    """How strength falls with time and rises with use. A month is 30 days."""

    initial_strength: Positive = 1.0
    hit_increment: Annotated[float, Field(ge=0.0)] = 0.1
    max_strength: Positive = 2.0
    monthly_decay: Annotated[float, Field(ge=0.0)] = 0.1
    cold_threshold: Annotated[float, Field(ge=0.0)] = 0.3
    promote_access_count: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _ordered(self) -> "DecayPolicy":
        if not self.cold_threshold <= self.initial_strength <= self.max_strength:
            raise problem(
                "thresholds_not_ordered",
                f"cold_threshold {self.cold_threshold} ≤ initial_strength {self.initial_strength} ≤ "
                f"max_strength {self.max_strength} does not hold",
            )
        return self


class ConflictPolicy(Section):
    """Whom to believe when two memories state different things under one `fact_key`: the earlier in the list."""

    source_priority: tuple[SourceName, ...] = ("HUMAN", "API", "USER", "AGENT", "LLM", "EXTERNAL_DOC")
    clarify: bool = True

    @field_validator("source_priority")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise problem("duplicate_item", "a source type stands twice; each may stand once")
        return value


class Credibility(Section):
    """Trust in each source type, 0 to 1: the credibility signal, and the confidence of a write that gives none."""

    HUMAN: Unit = 1.0
    API: Unit = 1.0
    USER: Unit = 0.9
    AGENT: Unit = 0.7
    EXTERNAL_DOC: Unit = 0.5
    LLM: Unit = 0.3


class CachePolicy(Section):
    """What is kept in the cache and for how long."""

    query_embedding_ttl_s: Annotated[int, Field(ge=0, le=86_400)] = 3600
    working_memory_ttl_s: Annotated[int, Field(ge=1, le=2_592_000)] = 86_400


class ContextPolicy(Section):
    """How `GetContext` lays out its block."""

    token_budget: Annotated[int, Field(ge=16, le=100_000)] = 1000
    show_time: bool = True
    show_source: bool = True
    low_confidence_note: Unit = 0.3
    ask_to_confirm: bool = False


class SectionOverrides(Section):
    """Values that replace those of the base for a namespace subtree: partial sections, merged key by key."""

    write_policy: dict[str, Any] = Field(default_factory=dict)
    retrieve_policy: dict[str, Any] = Field(default_factory=dict)
    decay_policy: dict[str, Any] = Field(default_factory=dict)
    conflict_policy: dict[str, Any] = Field(default_factory=dict)
    credibility: dict[str, Any] = Field(default_factory=dict)
    cache_policy: dict[str, Any] = Field(default_factory=dict)
    context_policy: dict[str, Any] = Field(default_factory=dict)
    sensitive_policy: dict[str, Any] = Field(default_factory=dict)
    guard_policy: dict[str, Any] = Field(default_factory=dict)
    namespace_policy: dict[str, Any] = Field(default_factory=dict)


class NamespaceSettings(Section):
    """How namespaces stand to each other: what `namespace_policy` says, in the base and in an override."""

    default_isolation: bool = True
    shared_pool_approval: bool = True
    subject_required: bool = False
    isolation: Literal["shared", "dedicated"] = "shared"


class NamespacePolicy(NamespaceSettings):
    """The settings of the base, and what differs below one namespace."""

    overrides: dict[Namespace, SectionOverrides] = Field(default_factory=dict)

    @field_validator("isolation")
    @classmethod
    def _of_a_subtree(cls, value: str) -> str:
        if value == "dedicated":
            raise problem(
                "dedicated_at_root",
                "dedicated sets a subtree apart from all others; set it in overrides, for the namespace that is meant",
            )
        return value


class PolicySet(Section):
    """A whole policy with every default filled in. `rbac` absent: only the bootstrap administrator may act."""

    write_policy: WritePolicy = Field(default_factory=WritePolicy)
    retrieve_policy: RetrievePolicy = Field(default_factory=RetrievePolicy)
    decay_policy: DecayPolicy = Field(default_factory=DecayPolicy)
    namespace_policy: NamespacePolicy = Field(default_factory=NamespacePolicy)
    conflict_policy: ConflictPolicy = Field(default_factory=ConflictPolicy)
    credibility: Credibility = Field(default_factory=Credibility)
    cache_policy: CachePolicy = Field(default_factory=CachePolicy)
    context_policy: ContextPolicy = Field(default_factory=ContextPolicy)
    sensitive_policy: SensitivePolicy = Field(default_factory=SensitivePolicy)
    guard_policy: GuardPolicy = Field(default_factory=GuardPolicy)
    degradation_policy: DegradationPolicy = Field(default_factory=DegradationPolicy)
    rbac: Rbac | None = None
