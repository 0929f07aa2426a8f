"""Looks for better values of policy keys by coordinate ascent, on one half of the questions.

One key after another takes each of its values; the best is kept where it gains LEAST_GAIN or more. Rounds go on until
none gains, or the trials are used up. What is found is then judged on the other half, which no trial has seen.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from memplane.evaluation.runner import LoadedGroup

Value = int | float | str
Setting = Mapping[str, Value]
"""Values by key of `retrieve_policy`, such as `weights.text`."""

LEAST_GAIN = 0.001
"""A smaller gain is no reason to leave the value that stands. Unmeasured."""
KEYS: Mapping[str, Sequence[Value]] = {
    "weights.text": (0, 0.2, 0.4, 0.8),
    "weights.vector": (0.2, 0.4, 0.6, 0.8),
    "weights.freshness": (0, 0.05, 0.1, 0.2),
    "neighbours.use": ("off", "signal"),
    "neighbours.before": (0, 0.3, 0.6, 0.9),
    "neighbours.after": (0, 0.2, 0.4),
    "odds.named_speaker": (1, 2, 4),
    "asked_time.weight": (0, 0.2, 0.4, 0.8),
    "diversity": (0, 0.25, 0.5),
    "fusion.vector_weight": (0.25, 0.5, 1, 2),
    "freshness.time_constant_days": (30, 90, 365),
}
"""What is tried by default. Of the two weights of the fusion only their ratio counts."""


@dataclass(frozen=True)
class Trial:
    """What a setting came to on the training half; `kept`: it was the best until then."""

    setting: Setting
    value: float
    kept: bool


async def ascend(
    measure: Callable[[Setting], Awaitable[float]],
    start: Setting,
    keys: Mapping[str, Sequence[Value]],
    most_trials: int,
) -> list[Trial]:
    """The trials in order, the first that of `start`; the best setting is that of the last one kept.

    `start` has a value for each of the keys. No setting is tried twice.
    """
    best, value = dict(start), await measure(start)
    trials = [Trial(start, value, kept=True)]
    tried = {tuple(best.values())}
    is_better = True
    while is_better:
        is_better = False
        for key, values in keys.items():
            for candidate in values:
                setting = {**best, key: candidate}
                if tuple(setting.values()) in tried:
                    continue
                if len(trials) > most_trials:
                    return trials
                tried.add(tuple(setting.values()))
                found = await measure(setting)
                kept = found >= value + LEAST_GAIN
                trials.append(Trial(setting, found, kept))
                if kept:
                    best, value, is_better = setting, found, True
    return trials


def value_of(text: str) -> Value:
    """A number where it is one, whole where it is whole; else the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def best_of(trials: Sequence[Trial]) -> Setting:
    """The setting that was kept last."""
    return next(trial.setting for trial in reversed(trials) if trial.kept)


def halves(loaded: Sequence[LoadedGroup]) -> tuple[list[LoadedGroup], list[LoadedGroup]]:
    """Training and held-back half: whole groups, or the questions of the only group that has any, by a hash of names.

    Groups go to the half that has fewer questions so far; questions that are not scored are left out.
    """
    scored = [_with(each, [question for question in each.group.questions if question.evidence]) for each in loaded]
    asked = sorted((each for each in scored if each.group.questions), key=lambda each: _hash(each.group.name))
    if len(asked) == 1:
        questions = sorted(asked[0].group.questions, key=lambda question: _hash(question.id))
        middle = len(questions) // 2
        return [_with(asked[0], questions[:middle])], [_with(asked[0], questions[middle:])]
    sides: tuple[list[LoadedGroup], list[LoadedGroup]] = ([], [])
    counts = [0, 0]
    for each in sorted(asked, key=lambda each: -len(each.group.questions)):
        side = int(counts[1] < counts[0])
        sides[side].append(each)
        counts[side] += len(each.group.questions)
    return sides


def nested(setting: Setting) -> dict[str, Any]:
    """A setting as a section of a policy: `weights.text` becomes `text` in `weights`."""
    section: dict[str, Any] = {}
    for key, value in setting.items():
        *path, name = key.split(".")
        inner = section
        for part in path:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return section


def _with(target: LoadedGroup, questions: Sequence[Any]) -> LoadedGroup:
    return replace(target, group=replace(target.group, questions=list(questions)))


def _hash(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()
