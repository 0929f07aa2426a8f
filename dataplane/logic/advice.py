"""What the decision on a memory that is kept for long advises the agent: another kind, the shared pool."""

from collections.abc import Iterator

from dataplane.logic.gate import Reason
from dataplane.logic.gate_model import Opinion
from dataplane.model import Draft, Kind, Pool

LIKELY = 0.75
UNLIKELY = 0.4
"""What an output must reach to be spoken of, and where its opposite must stay below. Unmeasured."""


def advice(opinion: Opinion, draft: Draft) -> Iterator[Reason]:
    """Reasons that change nothing; the agent may act on them."""
    outputs = opinion.outputs
    if draft.kind is Kind.FACT and outputs.get("preference", 0.0) >= LIKELY > outputs.get("reusable", 0.0):
        yield Reason("KIND_PROPOSAL", f"it reads as a preference ({outputs['preference']:.2f}): kind PREFERENCE fits")
    private = max(outputs.get("sensitive", 0.0), opinion.outputs.get("preference", 0.0))
    if draft.pool is Pool.PRIVATE and outputs.get("reusable", 0.0) >= LIKELY and private < UNLIKELY:
        told = f"others may need it ({outputs['reusable']:.2f}): it could be written to the SHARED pool"
        yield Reason("SHARED_POOL_PROPOSAL", told)
