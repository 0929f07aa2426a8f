"""Plans of batches whose commits build on each other; what each refusal is, the contract suite tells."""

from dataplane.adapters.postgres.plan import Standing, keys_of, plan, statement_of
from dataplane.changes import Change, RequestRecord, Supersession
from dataplane.errors import DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion
from dataplane.model import State
from tests.contract.builders import NOW_US, commit_of, memory_of, vector_of


def request_of(request_id: str = "r", expire_time_us: int = NOW_US + 10) -> RequestRecord:
    return RequestRecord("alice", request_id, "hash", b"", expire_time_us)


def test_keys_are_each_named_once_in_order() -> None:
    commits = [
        commit_of(memory_of("b", content="same", fact_key="f"), request=request_of()),
        commit_of(memory_of("a", content="same", fact_key="f"), supersedes=(Supersession("b", 1, NOW_US),)),
        commit_of(memory_of("c", version=2), expected_version=1),
        commit_of(None),
    ]
    keys = keys_of(commits)
    assert keys.memory_ids == ["a", "b", "c"]
    assert keys.standing_ids == ["c"]
    assert (len(keys.statements), len(keys.facts), keys.requests) == (2, 1, [("alice", "r")])


def test_a_later_commit_meets_an_earlier_one_of_its_batch() -> None:
    commits = [
        commit_of(memory_of("a", fact_key="f"), request=request_of()),
        commit_of(memory_of("b", content="a")),
        commit_of(memory_of("c", fact_key="f")),
        commit_of(memory_of("d"), request=request_of()),
        commit_of(memory_of("a", content="two", version=2), expected_version=1, change=Change.UPDATED),
        commit_of(memory_of("e", content="a")),
    ]
    made = plan(commits, Standing())
    assert made.results == [1, DuplicateContent("a"), DuplicateFact("a"), DuplicateRequest("r"), 2, 3]
    assert list(made.inserted) == ["a", "e"]
    assert made.inserted["a"].version == 2
    assert [(row.memory.memory_id, row.memory.version) for row in made.versions] == [("a", 1), ("a", 2), ("e", 1)]
    assert made.updated == {}


def test_a_memory_made_and_superseded_in_one_batch_is_inserted_as_superseded() -> None:
    commits = [
        commit_of(memory_of("a", fact_key="f")),
        commit_of(memory_of("b", fact_key="f"), supersedes=(Supersession("a", 1, NOW_US),)),
    ]
    made = plan(commits, Standing())
    assert made.results == [1, 3]
    assert (made.inserted["a"].state, made.inserted["b"].state) == (State.SUPERSEDED, State.ACTIVE)
    assert [memory_id for memory_id, _ in made.outbox] == ["a", "a", "b"]


def test_a_refused_commit_supersedes_nothing() -> None:
    loser = memory_of("a", fact_key="f")
    standing = Standing(rows={"a": loser}, taken={"a", "x"}, statements={statement_of(loser): "a"})
    taken = commit_of(memory_of("x", fact_key="f"), supersedes=(Supersession("a", 1, NOW_US),))
    made = plan([taken], standing)
    assert made.results == [StaleVersion("x", 0, 0)]
    assert not made.writes
    assert standing.rows == {"a": loser}


def test_a_request_that_expired_by_the_time_of_a_commit_is_free_again() -> None:
    standing = Standing(requests={("alice", "r"): NOW_US + 5, ("alice", "s"): NOW_US + 5})
    early = commit_of(None, request=request_of("r"))
    late = commit_of(None, request=request_of("s", NOW_US + 99), now_us=NOW_US + 5)
    made = plan([early, late, early], standing)
    assert made.results == [DuplicateRequest("r"), 0, 0]
    assert (list(made.requests), made.expired_us) == ([("alice", "s"), ("alice", "r")], NOW_US + 5)


def test_an_embedding_is_kept_once() -> None:
    late = commit_of(memory_of("a"), expected_version=1, embedding=vector_of(1))
    standing = Standing(rows={"a": memory_of("a")}, taken={"a"})
    made = plan([late, late], standing)
    assert made.results == [1, 1]
    assert len(made.embeddings) == 1
