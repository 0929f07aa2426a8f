"""Memories and questions for the benchmarks: generated from a seed, so that every run measures the same."""

import random  # noqa: TID251 - seeded: every run draws the same
from dataclasses import dataclass

import numpy as np

from dataplane.model import Vector

NAMESPACE = "bench.plant"
SEED = 20261130
_WHO = ("Dana", "Olaf", "Mei Lin", "Priya", "Tom", "Jutta", "Ahmed", "Rosa")
_WHAT = ("pump", "press", "lathe", "forklift", "oven", "conveyor", "crane", "mixer")
_DID = ("repaired", "inspected", "ordered parts for", "shut down", "calibrated", "cleaned", "moved", "tested")
_WHERE = ("hall one", "hall two", "the north yard", "building C", "the cold store", "line four")
_WHY = ("after the night shift", "because of a leak", "for the audit", "before the holidays", "at the customer's wish")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to remember, with unit vectors for those that are not embedded in the run, and questions."""

    texts: tuple[str, ...]
    vectors: tuple[Vector, ...]
    questions: tuple[str, ...]


def corpus(memories: int, questions: int, dimension: int) -> Corpus:
    """A corpus of distinct texts of 12 to 20 tokens, and distinct questions of 8 to 12."""
    dice = random.Random(SEED)  # noqa: S311 - a benchmark's dice
    noise = np.random.default_rng(SEED).standard_normal((memories, dimension)).astype(np.float32)
    unit = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return Corpus(
        texts=tuple(_text(dice, number) for number in range(memories)),
        vectors=tuple(unit),
        questions=tuple(_question(dice, number) for number in range(questions)),
    )


def _text(dice: random.Random, number: int) -> str:
    who, did, what = dice.choice(_WHO), dice.choice(_DID), dice.choice(_WHAT)
    return f"{who} {did} {what} {number} in {dice.choice(_WHERE)} {dice.choice(_WHY)}, ticket T-{number:05d}"


def _question(dice: random.Random, number: int) -> str:
    return f"Who {dice.choice(_DID)} the {dice.choice(_WHAT)} in {dice.choice(_WHERE)} on day {number}?"
