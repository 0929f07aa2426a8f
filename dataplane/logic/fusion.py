"""Several retrievers' lists made into one list of candidates.

`zscore`: each list's scores are put on one scale, z = (score − mean) / deviation over that list, and a memory gets the
weighted sum over all lists. A memory that a list lacks counts there as that list's lowest z less 0.5: its true score
lies below the cut, by how much is unknown (0, 0.5 and 1 select alike on 300 LoCoMo questions: recall@10 within .01;
2026-11). A list whose scores are all equal (one element too) says only "found": z = 0 for what it holds, −1 for what it
lacks.

`rrf`: the weighted sum of 1 / (rrf_k + rank), rank 1 = best (Cormack, Clarke, Büttcher 2009). What a list lacks gets 0.

Either way ties are put in order of memory id, so that the result is the same on every replica.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from dataplane.model import Candidate
from memplane.policy.retrieve import FusionPolicy

ABSENT_BELOW = 0.5
ABSENT_FROM_FLAT = -1.0
FLAT = 1e-9


def fuse(lists: Mapping[str, Sequence[Candidate]], policy: FusionPolicy, top_n: int) -> list[str]:
    """At most `top_n` memory ids, best first.

    Lists are named "vector" and "text", after which the policy names its weights; any other list weighs 1. Within a
    list the highest score of an id counts.
    """
    best = {name: _best(candidates) for name, candidates in lists.items() if candidates}
    totals = dict.fromkeys(sorted({memory_id for scores in best.values() for memory_id in scores}), 0.0)
    for name, scores in sorted(best.items()):  # in one order, so that sums are the same to the last bit
        weight = _weight(name, policy)
        shares, absent = _reciprocal_ranks(scores, policy.rrf_k) if policy.method == "rrf" else _z_scores(scores)
        for memory_id in totals:
            totals[memory_id] += weight * shares.get(memory_id, absent)
    return sorted(totals, key=lambda memory_id: (-totals[memory_id], memory_id))[: max(0, top_n)]


def _best(candidates: Sequence[Candidate]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for candidate in candidates:
        known = scores.get(candidate.memory_id)
        if known is None or candidate.score > known:
            scores[candidate.memory_id] = candidate.score
    return scores


def _weight(name: str, policy: FusionPolicy) -> float:
    if name == "vector":
        return policy.vector_weight
    return policy.text_weight if name == "text" else 1.0


def _z_scores(scores: Mapping[str, float]) -> tuple[dict[str, float], float]:
    mean = fmean(scores.values())
    deviation = fmean((score - mean) ** 2 for score in scores.values()) ** 0.5
    if deviation <= FLAT * max(1.0, abs(mean)):
        return dict.fromkeys(scores, 0.0), ABSENT_FROM_FLAT
    z_scores = {memory_id: (score - mean) / deviation for memory_id, score in scores.items()}
    return z_scores, min(z_scores.values()) - ABSENT_BELOW


def _reciprocal_ranks(scores: Mapping[str, float], rrf_k: int) -> tuple[dict[str, float], float]:
    ordered = sorted(scores, key=lambda memory_id: (-scores[memory_id], memory_id))
    return {memory_id: 1.0 / (rrf_k + rank) for rank, memory_id in enumerate(ordered, start=1)}, 0.0
