"""Makes labelled pairs of statements from `pair_templates`: the same seed makes the same pairs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded: the same pairs every time

from pair_templates import (
    CHINESE,
    CHINESE_SUBJECTS,
    CHINESE_THINGS,
    ENDINGS,
    ENGLISH,
    ENGLISH_SUBJECTS,
    ENGLISH_THINGS,
    OPENINGS,
    UNREAL,
    Topic,
)

_LOWERED = frozenset(["My", "The", "You", "Call", "When", "At", "By", "Of", "On", "Last", "Yesterday", "A"])
_VERB = re.compile(r"(\w+)~")
_IRREGULAR = {"be": ("am", "is"), "have": ("have", "has"), "do": ("do", "does")}


@dataclass(frozen=True)
class Pair:
    """Two statements; `label` is duplicate, conflict or other; `relation` says more finely; `group` is the topic."""

    a: str
    b: str
    label: str
    relation: str
    group: str


@dataclass(frozen=True)
class _Language:
    code: str
    topics: tuple[Topic, ...]
    subjects: tuple[str, ...]
    things: tuple[str, ...]


LANGUAGES = (
    _Language("en", ENGLISH, ENGLISH_SUBJECTS, ENGLISH_THINGS),
    _Language("zh", CHINESE, CHINESE_SUBJECTS, CHINESE_THINGS),
)


def generate(seed: int, rounds: int) -> list[Pair]:
    """`rounds` pairs of each relation of each topic, in both languages."""
    made = [
        pair for language in LANGUAGES for topic in language.topics for pair in _seeded(language, topic, seed, rounds)
    ]
    return list({frozenset((pair.a, pair.b)): pair for pair in made if pair.a != pair.b}.values())


def _seeded(language: _Language, topic: Topic, seed: int, rounds: int) -> Iterator[Pair]:
    """The pairs of a topic; they do not change when another topic does."""
    return _of_topic(language, topic, Random(f"{seed} {language.code} {topic.name}"), rounds)  # noqa: S311 - no secret


def _of_topic(language: _Language, topic: Topic, rng: Random, rounds: int) -> Iterator[Pair]:
    for _ in range(rounds):
        who, other = rng.sample(language.things if topic.of_things else language.subjects, 2)
        value, change = rng.sample(topic.values, 2)
        first, second = rng.sample(topic.says, 2)
        if rng.random() < 0.3:
            second = first

        def told(template: str, subject: str, stated: str) -> str:
            return _told(language, rng, template, subject, stated)

        one = told(first, who, value)
        yield Pair(one, told(second, who, value), "duplicate", "duplicate", topic.name)
        changed = told(second, who, change)
        label = "conflict" if topic.arity == "one" else "other"
        yield Pair(
            one, changed, label, {"one": "conflict", "many": "additive", "event": "event"}[topic.arity], topic.name
        )
        yield Pair(one, told(second, other, rng.choice((value, change))), "other", "other_subject", topic.name)
        elsewhere = rng.choice(
            [item for item in language.topics if item.name != topic.name and item.of_things == topic.of_things]
        )
        unlike = told(rng.choice(elsewhere.says), rng.choice((who, who, other)), rng.choice(elsewhere.values))
        yield Pair(one, unlike, "other", "other_attribute", topic.name)
        if topic.denies and rng.random() < 0.7:
            denied = rng.choice(topic.denies)
            yield Pair(one, told(denied, who, value), "conflict", "negation", topic.name)
            yield Pair(one, told(denied, who, change), "other", "other_denied", topic.name)
            yield Pair(one, told(denied, other, value), "other", "other_subject", topic.name)
            yield Pair(told(denied, who, value), told(denied, who, value), "duplicate", "duplicate", topic.name)
        if topic.name == "lives":
            unreal = rng.choice(UNREAL[language.code])
            yield Pair(one, told(unreal, who, change), "other", "unreal", topic.name)
            yield Pair(one, told(unreal, who, value), "other", "unreal", topic.name)


def _told(language: _Language, rng: Random, template: str, subject: str, value: str) -> str:
    body = template.rstrip(".。")
    body = _chinese(body, subject, value, rng) if language.code == "zh" else _english(body, subject, value)
    opening = rng.choice(OPENINGS[language.code])
    if language.code == "en":
        if opening and not body.startswith("I "):
            body = body[0].lower() + body[1:] if body.split()[0] in _LOWERED else body
        else:
            body = body[0].upper() + body[1:]
    return opening + body + rng.choice(ENDINGS[language.code])


def _english(template: str, subject: str, value: str) -> str:
    first = subject == "I"
    own = "my" if first else subject + "'s"
    lowered = subject[0].lower() + subject[1:] if subject.startswith(("My ", "The ")) else subject
    body = _VERB.sub(lambda verb: _inflected(verb[1], first=first), template)
    later = {"S": lowered, "P": own if first else lowered + "'s", "M": "me" if first else lowered, "V": value}
    return re.sub(r"\b[SPMV]\b", lambda letter: later[letter[0]], body)


def _inflected(verb: str, *, first: bool) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][not first]
    return verb if first else verb + "s"


def _chinese(template: str, subject: str, value: str, rng: Random) -> str:
    own = subject + ("的" if rng.random() < 0.6 else "")
    parts = {"S": subject, "P": own, "V": value}
    return re.sub("[SPV]", lambda letter: parts[letter[0]], template)
