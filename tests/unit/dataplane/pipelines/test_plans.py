"""What an admitted draft does to what is there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.changes import Change
from dataplane.codec import Admission, new_memory, parse_body
from dataplane.logic.dedup import Neighbour
from dataplane.logic.gate import GateDecision
from dataplane.logic.score import Score
from dataplane.model import DAY_US, Action, Draft, Layer, Memory, Source, SourceType, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.plans import Admitted, contradict, create, reinforce, repeat
from dataplane.pipelines.spaces import VectorSpace
from dataplane.pipelines.verdict import Verdict
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot
from memplane.v1 import memory_pb2

NOW_US = 1_760_000_000_000_000
POLICIES = EffectivePolicies(PolicySet())
CALLER = Caller(Identity("agent"), PolicySnapshot("sha256:1", 1, NOW_US, POLICIES, AccessIndex(None, None)))
SPACE = VectorSpace(HashEmbedder(), InMemoryVectorIndex(4), None)
VECTOR = np.ones(4, dtype=np.float32) / 2


def admitted(
    content: str = "Drinks coffee", *, layer: Layer = Layer.LONG_TERM, layer_ttl_us: int | None = None, **fields: Any
) -> Admitted:
    """A draft of USER that the gate admitted at NOW_US."""
    draft = Draft(**{"namespace": "a", "content": content, "source": Source(SourceType.USER), **fields})
    gate = GateDecision(layer, Action.CREATED, 0.7, ())
    return Admitted(
        draft=draft,
        policies=POLICIES.for_namespace("a"),
        admission=Admission(
            memory_id="mem_new",
            content=content,
            content_hash=f"hash of {content}",
            layer=layer,
            confidence=0.9,
            principal_id="agent",
            policy_version="sha256:1",
            now_us=NOW_US,
            layer_ttl_us=layer_ttl_us,
        ),
        embedding=VECTOR,
        space=SPACE,
        verdict=Verdict(Action.CREATED, State.ACTIVE, gate, Score(0.8, (), direct=False)),
        caller=CALLER,
    )


def stored(content: str = "Drinks tea", *, age_days: float = 0.0, **fields: Any) -> Memory:
    """A memory that such a draft made some days ago."""
    made = admitted(content, **fields)
    then_us = NOW_US - int(age_days * DAY_US)
    admission = replace(made.admission, memory_id="mem_old", now_us=then_us)
    return new_memory(made.draft, admission, State.ACTIVE, 1.0)


def test_a_new_memory_has_its_embedding_and_the_decision_in_its_commit() -> None:
    plan = create(admitted(), State.ACTIVE)
    assert (plan.commit.change, plan.commit.expected_version, plan.commit.memory) == (Change.CREATED, 0, plan.shown)
    assert plan.commit.embedding is VECTOR
    assert plan.commit.decision is not None
    assert plan.commit.decision.action is Action.CREATED


def test_what_is_said_again_keeps_its_version_and_is_as_strong_as_new() -> None:
    old = stored("Drinks coffee", age_days=90)
    plan = reinforce(admitted(), old, "SAME_CONTENT", "known")
    assert (plan.verdict.action, plan.commit.change, plan.shown.version) == (Action.MERGED, Change.MERGED, 1)
    assert (plan.shown.strength, plan.shown.strength_time_us) == (1.0, NOW_US)
    assert plan.commit.embedding is None


@pytest.mark.parametrize(("ttl_us", "kept_ttl_us"), [(None, None), (DAY_US, DAY_US), (1, 9)])
def test_what_is_said_again_is_kept_until_the_later_end(ttl_us: int | None, kept_ttl_us: int | None) -> None:
    old = stored("Drinks coffee", layer=Layer.WORKING, layer_ttl_us=9)
    plan = reinforce(admitted(layer=Layer.WORKING, ttl_us=ttl_us), old, "SAME_CONTENT", "known")
    assert plan.shown.expire_time_us == (None if kept_ttl_us is None else NOW_US + kept_ttl_us)
    assert plan.shown.version == (1 if kept_ttl_us == 9 else 2)


def test_what_is_said_again_rises_to_the_layer_it_earned_and_never_falls() -> None:
    low, high = stored("Drinks coffee", layer=Layer.SHORT_TERM), stored("Drinks coffee")
    assert reinforce(admitted(), low, "SAME_CONTENT", "known").shown.layer is Layer.LONG_TERM
    assert reinforce(admitted(layer=Layer.SHORT_TERM), high, "SAME_CONTENT", "known").shown.layer is Layer.LONG_TERM


def test_a_newer_wording_becomes_the_next_version_of_the_same_memory() -> None:
    old = stored("Likes tea", age_days=3, tags=("a", "b"), fact_key="user/drink", metadata={"ticket": 7.0})
    plan = repeat(admitted("Is fond of tea", tags=("c", "a")), Neighbour(old, "Likes tea", 0.97))
    message = parse_body(plan.shown)
    assert (plan.verdict.action, plan.commit.expected_version) == (Action.UPDATED, 1)
    assert (plan.shown.memory_id, plan.shown.version, message.content) == ("mem_old", 2, "Is fond of tea")
    assert (list(message.tags), plan.shown.fact_key) == (["c", "a", "b"], "user/drink")
    assert message.metadata.fields["ticket"].number_value == 7
    assert plan.shown.create_time_us == old.create_time_us
    assert plan.commit.embedding is VECTOR


def test_the_wording_of_a_better_source_stays() -> None:
    old = stored("Likes tea", source=Source(SourceType.HUMAN))
    plan = repeat(admitted("Is fond of tea"), Neighbour(old, "Likes tea", 0.97))
    assert (plan.verdict.action, parse_body(plan.shown).content) == (Action.MERGED, "Likes tea")
    assert plan.commit.embedding is None


def test_a_newer_statement_supersedes_the_older_from_when_it_holds() -> None:
    old = stored("Drinks tea", age_days=5, fact_key="user/drink")
    plan = contradict(admitted(fact_key="user/drink", event_time_us=NOW_US - DAY_US), old)
    (ended,) = plan.commit.supersedes
    assert (ended.memory_id, ended.valid_to_us) == ("mem_old", NOW_US - DAY_US)
    (conflict,) = plan.verdict.message().conflicts
    assert (conflict.memory_id, conflict.winner_id, conflict.rule) == ("mem_old", "mem_new", "NEWEST")


def test_the_statement_of_a_worse_source_is_stored_as_superseded() -> None:
    old = stored("Drinks tea", fact_key="user/drink", source=Source(SourceType.HUMAN))
    plan = contradict(admitted(fact_key="user/drink"), old)
    assert (plan.shown.state, plan.shown.superseded_by_id) == (State.SUPERSEDED, "mem_old")
    assert plan.commit.supersedes == ()
    (conflict,) = plan.verdict.message().conflicts
    assert (conflict.winner_id, conflict.rule) == ("mem_old", "SOURCE_PRIORITY")


def test_a_decision_names_every_reason_in_order() -> None:
    verdict = admitted().verdict.become(Action.MERGED, "SAME_CONTENT", "known")
    message = verdict.message()
    assert message.action == memory_pb2.DECISION_ACTION_MERGED
    assert [reason.code for reason in message.reasons] == ["SAME_CONTENT"]
    assert (message.score, message.threshold) == (0.8, 0.7)
