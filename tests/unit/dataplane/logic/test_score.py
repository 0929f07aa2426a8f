import re

import pytest

from dataplane.logic.gate_model import Opinion
from dataplane.logic.score import score
from memplane.policy.effective import CompiledRule
from memplane.policy.model import WritePolicy

POLICY = WritePolicy()
ALWAYS = CompiledRule(re.compile("总是|always"), 0.9, direct=False)
WEAK = CompiledRule(re.compile("tea"), 0.2, direct=False)
REMEMBER = CompiledRule(re.compile("记住|remember"), 1.0, direct=True)


def test_both_channels_are_weighed_by_the_policy() -> None:
    result = score("I always take the stairs", Opinion(0.5, {}), [ALWAYS], POLICY)
    assert result.value == pytest.approx(0.4 * 0.9 + 0.6 * 0.5)
    assert [part.channel for part in result.parts] == ["rule", "model"]


def test_a_channel_without_an_opinion_drops_out() -> None:
    result = score("My car is red", Opinion(0.9, {}), [ALWAYS], POLICY)
    assert result.value == pytest.approx(0.9)
    assert result.parts[0].abstained
    assert score("I always take the stairs", None, [ALWAYS], POLICY).value == pytest.approx(0.9)


def test_nobody_has_an_opinion_without_rule_and_model() -> None:
    assert score("My car is red", None, [ALWAYS], POLICY).value is None


def test_a_channel_of_weight_zero_has_no_say() -> None:
    policy = WritePolicy(rule_weight=1.0, model_weight=0.0)
    assert score("My car is red", Opinion(0.9, {}), [ALWAYS], policy).value is None
    assert score("always", Opinion(0.1, {}), [ALWAYS], policy).value == pytest.approx(0.9)


def test_the_highest_matching_rule_speaks_and_is_named() -> None:
    part = score("I always drink tea", None, [WEAK, ALWAYS], POLICY).parts[0]
    assert part.score == 0.9
    assert "always" in part.detail


def test_a_direct_rule_is_told_apart() -> None:
    assert score("记住我的工号", Opinion(0.0, {}), [REMEMBER], POLICY).direct
    assert not score("I always drink tea", Opinion(0.9, {}), [REMEMBER, ALWAYS], POLICY).direct


def test_rules_look_at_the_first_ten_thousand_characters_only() -> None:
    assert not score("x" * 10_000 + "remember", Opinion(0.0, {}), [REMEMBER], POLICY).direct


def test_the_models_other_outputs_are_told_and_have_no_say() -> None:
    result = score("My car is red", Opinion(0.8, {"factual": 0.9, "sensitive": 0.1}), [], POLICY)
    assert result.value == pytest.approx(0.8)
    told = {part.channel: (part.score, part.weight) for part in result.parts[2:]}
    assert told == {"model.factual": (0.9, 0.0), "model.sensitive": (0.1, 0.0)}
