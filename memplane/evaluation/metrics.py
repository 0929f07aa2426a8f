"""Retrieval metrics of one ranked list against its evidence. Pure.

A question has pieces of evidence; each piece is stated by any of its ids. `ranked` is best first. Ids that are optional
are taken out of the ranked list beforehand (`without_optional`), so that they neither count nor hurt.

Sources: recall@k and hit@k by pieces as in LoCoMo (Maharana et al. 2024, §4.1); NDCG after Järvelin and Kekäläinen
2002, with binary gain; MRR after Voorhees 1999.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

Evidence = Sequence[Collection[str]]


@dataclass(frozen=True)
class Scores:
    """What one question, or the mean over several, came to. Each is 0 to 1."""

    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    hit_at_10: float
    ndcg_at_10: float
    mrr: float


def score(ranked: Sequence[str], evidence: Evidence, optional: Collection[str] = ()) -> Scores:
    """Every metric of one question. `evidence` holds at least one piece."""
    kept = without_optional(ranked, evidence, optional)
    return Scores(
        recall_at_5=recall(kept, evidence, 5),
        recall_at_10=recall(kept, evidence, 10),
        recall_at_20=recall(kept, evidence, 20),
        hit_at_10=hit(kept, evidence, 10),
        ndcg_at_10=ndcg(kept, evidence, 10),
        mrr=reciprocal_rank(kept, evidence, 20),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean of each metric over questions; zeros for none."""
    count = max(len(scores), 1)
    names = Scores.__dataclass_fields__
    return Scores(**{name: sum(getattr(each, name) for each in scores) / count for name in names})


def without_optional(ranked: Sequence[str], evidence: Evidence, optional: Collection[str]) -> list[str]:
    """The ranked list without optional ids, unless they state evidence."""
    wanted = {memory_id for piece in evidence for memory_id in piece}
    return [memory_id for memory_id in ranked if memory_id in wanted or memory_id not in optional]


def recall(ranked: Sequence[str], evidence: Evidence, k: int) -> float:
    """Share of the pieces with at least one id in the top k."""
    top = set(ranked[:k])
    return sum(not top.isdisjoint(piece) for piece in evidence) / len(evidence)


def hit(ranked: Sequence[str], evidence: Evidence, k: int) -> float:
    """1 when any piece has an id in the top k, else 0."""
    return 1.0 if recall(ranked, evidence, k) > 0 else 0.0


def ndcg(ranked: Sequence[str], evidence: Evidence, k: int) -> float:
    """Binary-gain NDCG: a place gains 1 when it is the first to state some piece; the ideal has min(pieces, k) such."""
    open_pieces = list(evidence)
    gained = 0.0
    for place, memory_id in enumerate(ranked[:k], start=1):
        left = [piece for piece in open_pieces if memory_id not in piece]
        if len(left) < len(open_pieces):
            gained += 1 / math.log2(place + 1)
        open_pieces = left
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(evidence), k) + 1))
    return gained / ideal


def reciprocal_rank(ranked: Sequence[str], evidence: Evidence, k: int) -> float:
    """1 / rank of the first id that states any piece; 0 when none is in the top k."""
    wanted = {memory_id for piece in evidence for memory_id in piece}
    places = (place for place, memory_id in enumerate(ranked[:k], start=1) if memory_id in wanted)
    first = next(places, None)
    return 1 / first if first else 0.0
