"""Makes the gate's own training sentences of `gate_examples.tsv`, `gate_templates.tsv` and `gate_slots.tsv`.

Examples and templates have three columns: sort, flags, text. Sorts: lasting, episode (something told that happened or
is planned), passing (of no interest tomorrow), chatter (reactions), question, request. Flags say which outputs the text
should have: f factual, p preference, r reusable by others, s sensitive, - none. A template's `{slot}` stands for any
value of that slot.

Turns of a chat rarely are one sentence. So statements also come between a reaction and a question ("That's great! I
have two dogs. Do you have any pets?"), and reactions before a question.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
SEED = 20261130
VARIANTS = 3
"""How many sentences a template with slots makes."""
COMPOSED = 1
"""How many turns are composed of each statement that somebody would make in a chat."""
STATEMENTS = ("lasting", "episode", "passing")
_SLOT = re.compile(r"\{([^}]+)\}")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Sentence:
    """A text with its sort and flags; sentences of one `group` come of one line."""

    sort: str
    flags: str
    text: str
    group: str

    @property
    def is_chinese(self) -> bool:
        """Whether its script is Chinese."""
        return _CHINESE.search(self.text) is not None


def sentences() -> list[Sentence]:
    """All of them, the same at every call."""
    chance = np.random.default_rng(SEED)
    plain = list(_read("gate_examples.tsv"))
    filled = [made for template in _read("gate_templates.tsv") for made in _filled(template, _slots(), chance)]
    simple = [*plain, *filled]
    return [*simple, *_composed(simple, chance)]


def _read(name: str) -> Iterator[Sentence]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        sort, flags, text = line.split("\t")
        yield Sentence(sort, flags, text, group=text)


def _slots() -> Mapping[str, Sequence[str]]:
    lines = (FOLDER / "gate_slots.tsv").read_text(encoding="utf-8").splitlines()
    return {name: values.split("|") for name, values in (line.split("\t") for line in lines)}


def _filled(template: Sentence, slots: Mapping[str, Sequence[str]], chance: np.random.Generator) -> Iterator[Sentence]:
    """The template with values in its slots; no value stands twice in one sentence."""
    if not _SLOT.search(template.text):
        yield template
        return
    orders = {name: chance.permutation(len(values)) for name, values in slots.items()}
    for variant in range(VARIANTS):
        used: dict[str, int] = {}

        def value(match: re.Match[str], variant: int = variant, used: dict[str, int] = used) -> str:
            name = match[1]
            used[name] = used.get(name, -1) + 1
            return slots[name][orders[name][(variant + VARIANTS * used[name]) % len(slots[name])]]

        text = _SLOT.sub(value, template.text)
        yield replace(template, text=text[0].upper() + text[1:])


def _composed(simple: Sequence[Sentence], chance: np.random.Generator) -> Iterator[Sentence]:
    for is_chinese in (False, True):
        spoken = [one for one in simple if one.is_chinese == is_chinese]
        reactions = [one.text for one in spoken if one.sort == "chatter"]
        questions = [one.text for one in spoken if one.sort == "question"]
        space = "" if is_chinese else " "
        for one in spoken:
            if one.sort in STATEMENTS and "r" not in one.flags:
                for _ in range(COMPOSED):
                    yield replace(one, text=space.join(_around(one.text, reactions, questions, chance)))
            elif one.sort == "chatter":
                yield replace(one, text=space.join((one.text, _one_of(questions, chance))))


def _around(
    text: str, reactions: Sequence[str], questions: Sequence[str], chance: np.random.Generator
) -> Iterator[str]:
    """A reaction, the text, a question; one of the two may be missing."""
    draw = chance.random()
    if draw < 0.7:
        yield _one_of(reactions, chance)
    yield text
    if draw > 0.4:
        yield _one_of(questions, chance)


def _one_of(texts: Sequence[str], chance: np.random.Generator) -> str:
    return texts[int(chance.integers(len(texts)))]
