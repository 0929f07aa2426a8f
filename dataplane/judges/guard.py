"""Tells how suspect each row is: `{"text"}` in, `{"score", "action", "signals"}` out, by the default policy.

`score` is 0 to 1; `action` is quarantine, reject or allow; `signals` names what was found, strongest first. The setting
`without` lists signals that shall not count.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dataplane.logic.guard.suspicion import Reader
from dataplane.pipelines.guard import judged
from memplane.policy.guard import GuardPolicy

SOURCE = "USER"
"""Its factor is 1, so that the score is that of the text alone."""


async def judge(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """The judgement on each row's text alone: nothing is known of its writer."""
    reader = Reader()
    policy = GuardPolicy(signals=dict.fromkeys(settings.get("without", ()), 0.0))
    for row in rows:
        found = judged(reader.signals(row["text"]), policy, SOURCE)
        yield {
            "score": found.suspicion,
            "action": found.action or "allow",
            "signals": [signal.name for signal in found.signals],
        }
