"""How much a text is worth keeping, 0 to 1, by the channels that have an opinion.

    score = Σ weight × score / Σ weight, over the channels that do not abstain        (DESIGN §5)

The rule channel has the opinion of the highest rule that matches, and abstains when none does. The model channel
abstains when it could not be asked (the embedder is down). A channel of weight 0 has no say: the model's four other
outputs are told so, "model.factual" and so on. A `direct` rule that
matches admits the text whatever the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.logic.gate_model import Opinion
from memplane.policy.effective import CompiledRule
from memplane.policy.model import WritePolicy

RULE_TEXT_CHARACTERS = 10_000
"""Rules look at this much of the text, so that a slow pattern stays bounded."""


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One channel's opinion: `score` 0 to 1, 0 when it abstained; `detail` says why."""

    channel: str
    score: float
    weight: float
    abstained: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Score:
    """The weighted mean, 0 to 1, or None when nobody had an opinion; its parts; whether a direct rule matched."""

    value: float | None
    parts: tuple[ScorePart, ...]
    direct: bool


def score(text: str, opinion: Opinion | None, rules: Sequence[CompiledRule], policy: WritePolicy) -> Score:
    """The score of a normalised text. `opinion` is None when the model could not be asked."""
    matching = _matching(text, rules)
    parts = (_rule_part(matching, policy.rule_weight), *_model_parts(opinion, policy.model_weight))
    heard = [part for part in parts if not part.abstained]
    weight = sum(part.weight for part in heard)
    value = sum(part.weight * part.score for part in heard) / weight if weight > 0 else None
    return Score(value, parts, direct=any(rule.direct for rule in matching))


def _matching(text: str, rules: Sequence[CompiledRule]) -> list[CompiledRule]:
    shown = text[:RULE_TEXT_CHARACTERS]
    return [rule for rule in rules if rule.pattern.search(shown)]


def _rule_part(matching: Sequence[CompiledRule], weight: float) -> ScorePart:
    if not matching:
        return ScorePart("rule", 0.0, weight, abstained=True, detail="no rule matched")
    best = max(matching, key=lambda rule: (rule.direct, rule.score))
    said = "direct rule" if best.direct else "rule"
    highest = max(rule.score for rule in matching)
    return ScorePart("rule", highest, weight, abstained=False, detail=f"{said} {best.pattern.pattern!r} matched")


def _model_parts(opinion: Opinion | None, weight: float) -> tuple[ScorePart, ...]:
    if opinion is None:
        return (ScorePart("model", 0.0, weight, abstained=True, detail="the model could not be asked"),)
    outputs = (
        ScorePart(f"model.{name}", value, 0.0, abstained=False, detail=f"how {name} it is; has no say in the score")
        for name, value in opinion.outputs.items()
    )
    return (ScorePart("model", opinion.keep, weight, abstained=False, detail="gate model"), *outputs)
