"""A draft goes on masked, and the verdict on it tells what was masked and does what the policy wants."""

from dataclasses import replace

import numpy as np
import pytest

from dataplane.logic.gate import GateDecision, Reason
from dataplane.logic.score import Score
from dataplane.model import Action, Draft, Layer, Redaction, State
from dataplane.pipelines import redact
from dataplane.pipelines.redact import redact_message, redacted, with_redactions
from dataplane.pipelines.verdict import Verdict
from memplane.errors import InvalidField
from memplane.policy.effective import EffectivePolicies, NamespacePolicies
from memplane.policy.model import PolicySet
from memplane.policy.sensitive import SensitiveActions, SensitivePolicy
from memplane.v1 import memory_pb2

SPOKEN = "call 13812345678"
KEPT = "call 138****5678"
VECTOR = np.ones(4, dtype=np.float32) / 2
SCORED = Score(0.9, (), direct=False)
ADMITTED = Verdict(
    Action.CREATED, State.ACTIVE, GateDecision(Layer.LONG_TERM, Action.CREATED, 0.7, (Reason("R", "said"),)), SCORED
)
REFUSED = Verdict(
    Action.REJECTED, State.ACTIVE, GateDecision(None, Action.REJECTED, 0.3, (Reason("R", "said"),)), SCORED
)


def policies(**actions: str) -> NamespacePolicies:
    section = SensitivePolicy(actions=SensitiveActions.model_validate(actions))
    return EffectivePolicies(PolicySet(sensitive_policy=section)).for_namespace("dept")


async def test_a_draft_goes_on_without_the_value_and_without_an_embedding_of_it() -> None:
    clean = await redacted(Draft(namespace="dept", content=SPOKEN, embedding=VECTOR, payload_hash="given"), policies())
    assert (clean.content, clean.embedding, clean.payload_hash) == (KEPT, None, "given")
    assert clean.redactions == (Redaction("PHONE_CN", "content", 1, "mask"),)
    tagged = await redacted(Draft(namespace="dept", content="call me", tags=(SPOKEN,), embedding=VECTOR), policies())
    assert tagged.embedding is VECTOR


async def test_what_was_masked_before_is_still_told() -> None:
    earlier = Redaction("EMAIL", "tags", 1, "mask")
    clean = await redacted(Draft(namespace="dept", content=SPOKEN, redactions=(earlier,)), policies())
    assert [item.type for item in clean.redactions] == ["EMAIL", "PHONE_CN"]
    assert (await redacted(clean, policies())) is clean


async def test_a_long_text_is_masked_like_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "LONG", 3)
    assert (await redacted(Draft(namespace="dept", content=SPOKEN), policies())).content == KEPT


@pytest.mark.parametrize(
    ("verdict", "action", "became", "state"),
    [
        (ADMITTED, "mask", Action.CREATED, State.ACTIVE),
        (ADMITTED, "reject", Action.REJECTED, State.ACTIVE),
        (ADMITTED, "review", Action.PENDING_REVIEW, State.PENDING_REVIEW),
        (REFUSED, "review", Action.REJECTED, State.ACTIVE),
    ],
)
def test_the_verdict_does_what_the_policy_wants(verdict: Verdict, action: str, became: Action, state: State) -> None:
    told = with_redactions(verdict, [Redaction("PASSWORD", "tags", 2, action)])
    assert (told.action, told.state) == (became, state)
    [redaction] = told.message().redactions
    assert (redaction.type, redaction.field, redaction.count) == ("PASSWORD", "tags", 2)
    if told.action is not verdict.action:
        assert told.message().reasons[-1].message.startswith("tags holds PASSWORD (2); ")


async def test_an_update_masks_what_it_changes_and_nothing_else() -> None:
    before = memory_pb2.Memory(content=SPOKEN, tags=["old"], speaker="Dana")
    changed = memory_pb2.Memory(content=SPOKEN, tags=[SPOKEN], speaker="a.b@example.org")
    changed.metadata.update({"ssn": 346277908})
    found = await redact_message(changed, before, policies())
    assert (changed.content, list(changed.tags), changed.speaker) == (SPOKEN, [KEPT], "a***@example.org")
    assert dict(changed.metadata) == {"ssn": "*****7908"}
    assert {item.field for item in found} == {"tags", "speaker", "metadata"}
    with pytest.raises(InvalidField, match=r"memory\.speaker: holds EMAIL; the policy refuses it"):
        await redact_message(memory_pb2.Memory(speaker="a.b@example.org"), before, policies(EMAIL="reject"))


def test_verdicts_are_told_apart_from_the_values() -> None:
    told = replace(ADMITTED, redactions=(Redaction("PHONE_CN", "content", 1, "mask"),)).message()
    assert "13812345678" not in str(told)
