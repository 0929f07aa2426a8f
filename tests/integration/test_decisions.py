"""What a write comes to, as clients see it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from memplane.v1 import memory_pb2
from tests.integration.harness import Plane, contents, running_plane, search, write

# The rules alone score: what they do not know is refused without a session. The tests' embedder counts shared words.
POLICY: dict[str, Any] = {
    "write_policy": {
        "dedup_similarity": 0.75,
        "rules": [
            {"pattern": "renews", "score": 0.9},
            {"pattern": "perhaps", "score": 0.5},
            {"pattern": "haha", "score": 0},
        ],
    }
}


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(policy=POLICY) as running:
        yield running


def action(response: Any) -> str:
    return memory_pb2.DecisionAction.Name(response.decision.action).removeprefix("DECISION_ACTION_")


async def test_a_score_decides_on_the_layer_and_the_answer_says_which_threshold(plane: Plane) -> None:
    kept = await write(plane, "Acme renews its contract in March", session_id="")
    short = await write(plane, "perhaps they order more bolts", session_id="")
    working = await write(plane, "haha ok", session_id="s1")
    assert [action(item) for item in (kept, short, working)] == ["CREATED", "KEPT_SHORT_TERM", "KEPT_WORKING"]
    layers = [memory_pb2.Layer.Name(item.memory.layer).removeprefix("LAYER_") for item in (kept, short, working)]
    assert layers == ["LONG_TERM", "SHORT_TERM", "WORKING"]
    assert [item.decision.threshold for item in (kept, short, working)] == [0.7, 0.7, 0.3]


async def test_a_refused_write_says_why_and_leaves_nothing_but_its_answer(plane: Plane) -> None:
    refused = await write(plane, "haha ok", session_id="", request_id="r1")
    again = await write(plane, "haha ok", session_id="", request_id="r1")
    assert (action(refused), refused.HasField("memory"), refused.consistency_token) == ("REJECTED", False, "")
    assert [reason.code for reason in refused.decision.reasons] == ["SCORE_BELOW_THRESHOLD"]
    assert again.decision == refused.decision
    assert contents(await search(plane, "haha ok")) == []


async def test_a_refusal_that_is_only_asked_about_keeps_no_answer_either(plane: Plane) -> None:
    asked = await write(plane, "haha ok", session_id="", request_id="r1", validate_only=True)
    written = await write(plane, "Acme renews its contract", session_id="", request_id="r1")
    assert [action(asked), action(written)] == ["REJECTED", "CREATED"]


async def test_nearly_the_same_statement_becomes_the_next_version(plane: Plane) -> None:
    first = await write(plane, "Acme renews its service contract every March", session_id="")
    second = await write(plane, "Acme renews its service contract in March", session_id="")
    assert (action(second), second.memory.id, second.memory.version) == ("UPDATED", first.memory.id, 2)
    assert contents(await search(plane, "When does Acme renew?")) == ["Acme renews its service contract in March"]


async def test_nearly_the_same_words_that_state_something_else_are_kept_apart(plane: Plane) -> None:
    await write(plane, "Acme renews its service contract every March", session_id="")
    other = await write(plane, "Acme renews its service contract every April", session_id="")
    assert action(other) == "CREATED"
