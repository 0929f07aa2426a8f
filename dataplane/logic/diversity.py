"""Hits that say different things: maximal marginal relevance (Carbonell and Goldstein 1998), as a product.

    next = argmax score × (1 − weight × s)            s = the greatest similarity to a hit that stands before, 0 to 1

Similarity is the embedder's calibrated one; a memory without an embedding is like none. As a product it leaves the
order alone where nothing is alike, whatever the scale of scores.

With weight 0.3 recall@10 on MemDaily zh, which says most things several times, is .804 against .787 and on LoCoMo,
which does not, .837 against .838; with 0.5 .816 and .825 (2026-11).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dataplane.model import Vector


def diverse(
    scores: Sequence[float],
    embeddings: Sequence[Vector | None],
    similarity: Callable[[float], float],
    weight: float,
    top_k: int,
) -> list[int]:
    """Places in `scores`, which fall, in their new order: the first `top_k` chosen as above, then the others."""
    left, given = list(range(len(scores))), np.asarray(scores, dtype=np.float64)
    chosen: list[int] = []
    alike = np.zeros(len(scores))
    while left and len(chosen) < top_k:
        worth = given[left] * (1.0 - weight * alike[left])
        best = left.pop(int(worth.argmax()))
        chosen.append(best)
        alike = np.maximum(alike, _likeness(embeddings, best, similarity))
    return chosen + left


def _likeness(
    embeddings: Sequence[Vector | None], one: int, similarity: Callable[[float], float]
) -> NDArray[np.float64]:
    """How like each is to one."""
    found = np.zeros(len(embeddings))
    vector = embeddings[one]
    if vector is None:
        return found
    known = [place for place, other in enumerate(embeddings) if other is not None]
    cosines = np.stack([other for other in embeddings if other is not None]) @ vector
    found[known] = [similarity(cosine) for cosine in cosines.tolist()]
    return found
