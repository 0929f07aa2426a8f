"""The section `guard_policy`: what is done with attacks on the memory, when written and when found."""

from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from memplane.policy.patterns import pattern_problem
from memplane.policy.section import Section

GuardAction = Literal["quarantine", "reject", "allow"]
SignalName = Literal[
    "override",
    "leak",
    "output",
    "authority",
    "persona",
    "delimiter",
    "addressed",
    "memory",
    "tool",
    "exfiltration",
    "stealth",
    "bypass",
    "decode",
    "encoded",
    "invisible",
    "link",
    "hidden",
    "embedded",
    "flood",
    "burst",
    "writer",
    "custom",
]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Factor = Annotated[float, Field(ge=0.0, le=2.0)]


class GuardRule(Section):
    """A pattern of your own, read against the folded text (lower case, plain letters): its score and its signal."""

    pattern: Annotated[str, Field(min_length=1, max_length=500)]
    score: Unit = 0.6
    signal: SignalName = "custom"

    @field_validator("pattern")
    @classmethod
    def _safe(cls, value: str) -> str:
        problem = pattern_problem(value)
        if problem is not None:
            raise PydanticCustomError("unsafe_pattern", "{problem}", {"problem": problem})
        return value


class SourceFactors(Section):
    """How much more (above 1) or less (below 1) suspect a text is for its source type; 0: never."""

    HUMAN: Factor = 0.9
    API: Factor = 1.0
    USER: Factor = 1.0
    AGENT: Factor = 1.0
    LLM: Factor = 1.1
    EXTERNAL_DOC: Factor = 1.2


class BurstPolicy(Section):
    """Many near-alike statements of one writer at once; `statements` counts the newest one too."""

    statements: Annotated[int, Field(ge=2, le=32)] = 4
    window_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 600.0
    similarity: Unit = 0.5
    score: Unit = 0.3


class ConsensusPolicy(Section):
    """What becomes of hits that answer alike and come from one writer at once: they count as one voice."""

    enabled: bool = True
    statements: Annotated[int, Field(ge=2, le=32)] = 3
    window_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 600.0
    similarity: Unit = 0.15
    coverage: Unit = 0.4


class GuardPolicy(Section):
    """From which suspicion on something is done, and what.

    `action` is taken from `threshold` on, `reject` from `reject_threshold` on; `allow` stores the memory and says why
    it is suspect. `signals` weighs signals (1 where not given, 0 turns one off).
    """

    enabled: bool = True
    action: GuardAction = "quarantine"
    threshold: Unit = 0.5
    reject_threshold: Unit = 1.0
    signals: dict[SignalName, Factor] = Field(default_factory=dict)
    sources: SourceFactors = Field(default_factory=SourceFactors)
    rules: tuple[GuardRule, ...] = ()
    burst: BurstPolicy = Field(default_factory=BurstPolicy)
    consensus: ConsensusPolicy = Field(default_factory=ConsensusPolicy)
