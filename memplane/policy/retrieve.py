"""The section `retrieve_policy`: what is found, and in which order."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from memplane.policy.names import KindName, Positive, Unit, problem
from memplane.policy.section import Section

ProfileName = Literal["weighted", "balanced", "orchestrated", "companion"]


class Shares(Section):
    """Weights that count relative to their sum; not negative, not all zero."""

    @model_validator(mode="after")
    def _not_all_zero(self) -> Self:
        if self.total() <= 0:
            raise problem("weights_all_zero", "every weight is 0; at least one must be above 0")
        return self

    def total(self) -> float:
        """Sum of the weights, above 0."""
        return float(sum(self.model_dump().values()))


class Weights(Shares):
    """Weights of the signals; not negative, not all zero; a sum other than 1 is normalised when scoring."""

    vector: Annotated[float, Field(ge=0.0)] = 0.6
    freshness: Annotated[float, Field(ge=0.0)] = 0.2
    frequency: Annotated[float, Field(ge=0.0)] = 0.1
    credibility: Annotated[float, Field(ge=0.0)] = 0.1
    task_alignment: Annotated[float, Field(ge=0.0)] = 0.0
    text: Annotated[float, Field(ge=0.0)] = 0.0


class Freshness(Section):
    """Freshness is exp(−days / time constant), the constant by kind or category where one is set."""

    time_constant_days: Positive = 30.0
    by_kind: dict[KindName, Positive] = Field(default_factory=dict)
    by_category: dict[str, Positive] = Field(default_factory=lambda: {"sales_data": 1.0 / 24.0})


class FusionPolicy(Section):
    """How retrievers' lists are fused into candidates (see `dataplane/logic/fusion.py`)."""

    method: Literal["zscore", "rrf"] = "zscore"
    vector_weight: Annotated[float, Field(ge=0.0)] = 0.5
    text_weight: Annotated[float, Field(ge=0.0)] = 1.0
    rrf_k: Annotated[int, Field(ge=1, le=1000)] = 60


class AskedTime(Section):
    """What is made of a time that a question names, such as "last week" (see `dataplane/logic/period.py`)."""

    use: Literal["signal", "filter", "off"] = "signal"
    weight: Annotated[float, Field(ge=0.0)] = 0.4
    fade_days: Positive = 7.0


class Neighbours(Section):
    """What the turns beside a memory in its session say for it (see `dataplane/logic/neighbours.py`)."""

    use: Literal["signal", "off"] = "off"
    before: Unit = 0.6
    after: Unit = 0.4
    reach: Annotated[int, Field(ge=1, le=5)] = 2


class Odds(Section):
    """What multiplies the odds of a memory's relevance; 1: no effect (see `dataplane/logic/profiles/relevance.py`)."""

    named_speaker: Annotated[float, Field(gt=0.0, le=100.0)] = 2.0
    asking: Annotated[float, Field(gt=0.0, le=100.0)] = 0.7


class KindDays(Section):
    """Time constants in days, one for each kind. Unmeasured."""

    FACT: Positive = 30.0
    PREFERENCE: Positive = 90.0
    EPISODE: Positive = 7.0
    INSTRUCTION: Positive = 90.0
    TOOL_RESULT: Positive = 1.0
    DOCUMENT: Positive = 180.0
    SUMMARY: Positive = 30.0


class OrchestratedWeights(Shares):
    """Weights of the profile `orchestrated`; not negative, not all zero; divided by their sum when scoring."""

    recency: Annotated[float, Field(ge=0.0)] = 0.3
    relevance: Annotated[float, Field(ge=0.0)] = 0.4
    authority: Annotated[float, Field(ge=0.0)] = 0.2
    task_alignment: Annotated[float, Field(ge=0.0)] = 0.1


class OrchestratedPolicy(Section):
    """The numbers of the profile `orchestrated` (see `dataplane/logic/profiles/linear.py`)."""

    weights: OrchestratedWeights = Field(default_factory=OrchestratedWeights)
    time_constant_days: KindDays = Field(default_factory=KindDays)


class CompanionPolicy(Section):
    """The numbers of the profile `companion` (see `dataplane/logic/profiles/companion.py`)."""

    decay_per_day: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01
    keep_above: Unit = 0.6
    use_gain: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    max_boost: Annotated[float, Field(ge=1.0, le=10.0)] = 1.5


class RetrievePolicy(Section):
    """What is found and how it is ranked."""

    top_k: Annotated[int, Field(ge=1, le=1000)] = 6
    vector_candidates: Annotated[int, Field(ge=1, le=20)] = 3
    text_candidates: Annotated[int, Field(ge=1, le=20)] = 2
    vector_ef: Annotated[int, Field(ge=1, le=10_000)] = 64
    min_confidence: Unit = 0.0
    profile: ProfileName = "weighted"
    weights: Weights = Field(default_factory=Weights)
    orchestrated: OrchestratedPolicy = Field(default_factory=OrchestratedPolicy)
    companion: CompanionPolicy = Field(default_factory=CompanionPolicy)
    freshness: Freshness = Field(default_factory=Freshness)
    fusion: FusionPolicy = Field(default_factory=FusionPolicy)
    frequency_window_days: Annotated[int, Field(ge=1, le=365)] = 30
    recency_words: tuple[Annotated[str, Field(min_length=1)], ...] = ("现在", "最新", "now", "latest", "current")
    asked_time: AskedTime = Field(default_factory=AskedTime)
    neighbours: Neighbours = Field(default_factory=Neighbours)
    odds: Odds = Field(default_factory=Odds)
    diversity: Unit = 0.0
    query_cache_ttl_s: Annotated[int, Field(ge=0, le=86_400)] = 300
