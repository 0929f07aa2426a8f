"""How suspect a text is: signals found by rules and cheap features, combined to one number.

Every rule and feature names its signal and a score s from 0 to 1; of one signal the highest counts. Signals combine as
independent witnesses (noisy or; Pearl, Probabilistic Reasoning in Intelligent Systems, 1988):

    suspicion = 1 - (prod over signals (1 - w s)) ^ f

with the policy's weight w of the signal (1 unless given) and factor f of the source: above 1 for sources that are
believed less, below 1 for those believed more; nothing found stays 0 whatever the source.

Rules are read against the text folded, the text read loosely (`reading`), and what is hidden in it (`encoded`). What
was hidden and is an attack gives the signal `encoded`, at least HIDDEN_ATTACK.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dataplane.logic.guard.anchors import anchors
from dataplane.logic.guard.chinese import CHINESE
from dataplane.logic.guard.elsewhere import ELSEWHERE
from dataplane.logic.guard.encoded import hidden_texts
from dataplane.logic.guard.english_claims import CLAIM_RULES
from dataplane.logic.guard.english_orders import ORDER_RULES
from dataplane.logic.guard.features import Signal, features
from dataplane.logic.guard.reading import readings
from dataplane.logic.guard.standing import STANDING_EN
from dataplane.logic.guard.standing_chinese import STANDING_ZH
from dataplane.logic.guard.words import Rule

HIDDEN_ATTACK = 0.7
ATTACK = 0.45
"""From here on what was hidden counts as an attack. Both unmeasured."""

BUILT_IN: tuple[Rule, ...] = (
    *ORDER_RULES,
    *CLAIM_RULES,
    *STANDING_EN,
    *CHINESE,
    *STANDING_ZH,
    *ELSEWHERE,
)


@dataclass(frozen=True, slots=True)
class Trust:
    """What the policy makes of signals: `weights` by name (1 where not given), and the factor of the source."""

    weights: Mapping[str, float] = field(default_factory=dict)
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule ready to be read."""

    signal: str
    score: float
    pattern: re.Pattern[str]


class Reader:
    """Finds the signals of texts by a set of rules."""

    def __init__(self, rules: Sequence[Rule] = BUILT_IN):
        self._rules = tuple(CompiledRule(signal, score, re.compile(pattern)) for signal, score, pattern in rules)
        self._by_anchor: dict[str, list[int]] = {}
        for index, rule in enumerate(self._rules):
            for anchor in anchors(rule.pattern.pattern) or {""}:
                self._by_anchor.setdefault(anchor, []).append(index)

    def signals(self, text: str) -> tuple[Signal, ...]:
        """The strongest signal of each name, strongest first."""
        return _strongest((*self._read(text), *self._hidden(text), *features(text)))

    def _read(self, text: str) -> list[Signal]:
        return [signal for reading in readings(text) for signal in self._matches(reading)]

    def _matches(self, folded: str) -> list[Signal]:
        wanted = {index for anchor, indexes in self._by_anchor.items() if anchor in folded for index in indexes}
        found = []
        for rule in (self._rules[index] for index in sorted(wanted)):
            match = rule.pattern.search(folded)
            if match is not None:
                found.append(Signal(rule.signal, rule.score, match[0].strip()[:80]))
        return found

    def _hidden(self, text: str) -> list[Signal]:
        found = []
        for encoding, said in hidden_texts(text):
            score = suspicion(_strongest(self._read(said)), Trust())
            if score >= ATTACK:
                found.append(Signal("encoded", max(HIDDEN_ATTACK, score), f"{encoding}: {said[:60]}"))
        return found


def suspicion(signals: Iterable[Signal], trust: Trust) -> float:
    """How suspect a text with these signals, one of each name, is: 0 to 1."""
    innocence = 1.0
    for signal in signals:
        innocence *= 1.0 - min(1.0, trust.weights.get(signal.name, 1.0) * signal.score)
    return 1.0 - float(innocence**trust.factor)


def _strongest(signals: Iterable[Signal]) -> tuple[Signal, ...]:
    best: dict[str, Signal] = {}
    for signal in signals:
        if signal.name not in best or signal.score > best[signal.name].score:
            best[signal.name] = signal
    return tuple(sorted(best.values(), key=lambda signal: (-signal.score, signal.name)))
