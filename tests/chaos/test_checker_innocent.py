"""What looks like a violation and is none."""

import pytest

from tests.chaos.final import erased
from tests.chaos.history import FinalOperation, marker
from tests.chaos.test_checker import FOREIGN, NS, OTHER, OWN, SHARED, Story, fact, kinds, memory

UNKNOWN = ["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN"]


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.mark.parametrize("code", UNKNOWN)
@pytest.mark.parametrize("happened", [True, False])
def test_a_write_of_unknown_outcome_may_or_may_not_be_there(story: Story, code: str, *, happened: bool) -> None:
    story.write(code=code)
    story.search([("m1", 1, OWN)] if happened else [], at=10)
    assert story.judged(*([memory()] if happened else [])).is_clean


@pytest.mark.parametrize("mode", ["SOFT", "HARD"])
@pytest.mark.parametrize("happened", [True, False])
def test_a_removal_of_unknown_outcome_may_or_may_not_have_happened(story: Story, mode: str, *, happened: bool) -> None:
    story.write()
    story.forget(mode=mode, code="DEADLINE_EXCEEDED")
    story.search([] if happened else [("m1", 1, OWN)], at=10)
    gone = [memory(state="SOFT_DELETED")] if mode == "SOFT" else []
    assert story.judged(*(gone if happened else [memory()])).is_clean


@pytest.mark.parametrize("code", ["PERMISSION_DENIED", "NOT_FOUND", "ABORTED", "RESOURCE_EXHAUSTED"])
def test_a_removal_that_was_refused_did_nothing(story: Story, code: str) -> None:
    story.write()
    story.forget(code=code)
    assert story.judged(memory()).is_clean
    assert kinds(story.judged(memory(state="SOFT_DELETED"))) == ["lost"]


@pytest.mark.parametrize("happened", [True, False])
def test_a_change_of_unknown_outcome_may_or_may_not_have_happened(story: Story, *, happened: bool) -> None:
    story.write()
    story.update(code="UNAVAILABLE")
    ended = memory(word=OTHER, version=2) if happened else memory()
    story.search([(ended.id, ended.version, ended.marker)], at=10)
    assert story.judged(ended).is_clean


def test_a_retry_with_its_request_id_is_one_write(story: Story) -> None:
    story.write(intent=0, code="UNAVAILABLE")
    story.write(intent=0, attempt=1)
    assert story.judged(memory()).acknowledged == 1
    assert story.judged(memory()).is_clean


def test_a_retry_of_what_was_erased_in_between_is_refused(story: Story) -> None:
    story.write(intent=0, code="DEADLINE_EXCEEDED")
    story.search([("m1", 1, OWN)])
    story.forget(mode="HARD")
    story.write("", intent=0, attempt=1, told={"action": "REJECTED", "state": ""})
    assert story.judged().is_clean


def test_a_change_beside_a_removal_may_come_first_or_fail(story: Story) -> None:
    story.write()
    story.update(at=2, until=6)
    story.forget(at=3, until=5)
    assert story.judged(memory(state="SOFT_DELETED", version=3)).is_clean


def test_a_search_that_began_before_a_removal_was_acknowledged_may_show_it(story: Story) -> None:
    story.write()
    story.forget(at=2, until=6)
    story.search([("m1", 1, OWN)], at=5, until=8)
    assert story.judged(memory(state="SOFT_DELETED")).is_clean


def test_a_statement_may_be_replaced_by_a_later_one_of_the_same_fact(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER)
    story.search([("m2", 1, OTHER)], word=OWN, token="t-m1")
    ended = [memory("m1", OWN, "SUPERSEDED", fact_key="k"), memory("m2", OTHER, fact_key="k")]
    assert story.judged(*ended).is_clean


def test_of_two_statements_at_once_either_may_win(story: Story) -> None:
    fact(story, "m1", OWN, at=0, until=3)
    fact(story, "m2", OTHER, at=1, until=4, told={"state": "ACTIVE"})
    one, other = memory("m1", OWN, fact_key="k"), memory("m2", OTHER, "SUPERSEDED", fact_key="k")
    assert story.judged(one, other).is_clean


def test_a_statement_may_be_replaced_by_one_of_unknown_outcome(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "", OTHER, code="UNAVAILABLE")
    ended = [memory("m1", OWN, "SUPERSEDED", fact_key="k"), memory("m2", OTHER, fact_key="k")]
    assert story.judged(*ended).is_clean


def test_a_fact_may_be_gone_whose_last_statement_was_forgotten(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER)
    story.forget("m2", "HARD")
    assert story.judged(memory("m1", OWN, "SUPERSEDED", fact_key="k")).is_clean


def test_a_write_told_that_it_lost_is_superseded(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER, told={"state": "SUPERSEDED"})
    ended = [memory("m1", OWN, fact_key="k"), memory("m2", OTHER, "SUPERSEDED", fact_key="k")]
    assert story.judged(*ended).is_clean


def test_a_memory_with_a_ttl_may_be_gone(story: Story) -> None:
    story.write(asked={"ttl": 2})
    story.search([], at=20)
    story.call("get", {"ns": NS, "id": "m1"}, code="NOT_FOUND")
    assert story.judged().is_clean


def test_a_synchronous_write_may_be_queued_when_it_says_why(story: Story) -> None:
    told = {"action": "QUEUED", "operation": "o", "degraded": ["record_store"]}
    story.write("", told=told)
    story.search([], at=10)
    done = FinalOperation(name="o", done=True, code="", memory_id="m1", state="ACTIVE")
    assert story.judged(memory(), operations=[done]).is_clean


def test_a_queued_write_may_be_refused_when_it_is_decided(story: Story) -> None:
    story.write("", told={"action": "QUEUED", "operation": "o"}, asked={"delivery": "QUEUED"})
    refused = FinalOperation(name="o", done=True, code="PERMISSION_DENIED")
    assert story.judged(operations=[refused]).is_clean


def test_a_queued_write_is_owed_to_reads_once_it_was_told_done(story: Story) -> None:
    story.write("", told={"action": "QUEUED", "operation": "o"}, asked={"delivery": "QUEUED"})
    story.search([], at=10)
    told = {"done": True, "id": "m1", "state": "ACTIVE", "version": 1, "token": "t"}
    story.call("operation", {"operation": "o"}, told)
    done = FinalOperation(name="o", done=True, code="", memory_id="m1", state="ACTIVE")
    assert story.judged(memory(), operations=[done]).is_clean
    story.search([], at=30, token="t")
    assert kinds(story.judged(memory(), operations=[done])) == ["lost"]


@pytest.mark.parametrize("backend", ["vector_index", "text_index", "embedder", "record_store"])
def test_a_degraded_answer_may_lack_something(story: Story, backend: str) -> None:
    story.write()
    story.search([], at=10, degraded=[backend])
    assert story.judged(memory()).is_clean


@pytest.mark.parametrize("backend", ["cache", "control_plane", "policy"])
def test_the_lack_of_what_only_makes_it_slower_excuses_nothing(story: Story, backend: str) -> None:
    story.write()
    story.search([], at=10, degraded=[backend])
    assert kinds(story.judged(memory())) == ["unmarked"]


def test_a_search_without_a_token_may_miss_what_was_just_written(story: Story) -> None:
    story.write()
    story.search([])
    assert story.judged(memory()).is_clean


def test_one_memory_of_many_equal_writes_is_right(story: Story) -> None:
    story.write("m1", SHARED)
    story.write("m1", SHARED, told={"action": "MERGED"})
    story.forget("m1", "HARD")
    story.write("m2", SHARED)
    story.search([("m2", 1, SHARED)], word=SHARED)
    assert story.judged(memory("m2", SHARED)).is_clean


def test_an_answer_may_show_a_statement_before_and_after_it_was_written_anew(story: Story) -> None:
    story.write("m1", SHARED)
    story.forget("m1", at=2, until=6.5)
    story.write("m2", SHARED, at=4, until=6)
    story.search([("m1", 1, SHARED), ("m2", 1, SHARED)], word=SHARED, at=3, until=8)
    assert story.judged(memory("m1", SHARED, "SOFT_DELETED"), memory("m2", SHARED)).is_clean


def test_an_error_may_name_what_was_asked_for(story: Story) -> None:
    asked = {"ns": "tenant-1.common", "marker": FOREIGN, "foreign": True}
    story.call("search", asked, {"markers": [FOREIGN]}, code="PERMISSION_DENIED")
    assert story.judged().is_clean


def test_time_in_which_the_client_was_held_up_is_not_the_services(story: Story) -> None:
    story.search([], at=0, until=2.0, deadline_s=1)
    story.call("lag", {}, at=0.9, until=1.9)
    assert story.judged().is_clean


def test_a_list_broken_off_need_not_be_whole(story: Story) -> None:
    story.write()
    asked = {"ns": NS, "subject": "s0"}
    story.call("list", asked, {"hits": [], "last": False}, intent=9)
    story.call("list", asked, code="UNAVAILABLE", intent=9, item=1)
    assert story.judged(memory()).is_clean


def test_two_changes_at_once_may_end_in_either_order(story: Story) -> None:
    story.write()
    third = marker(0, 0, 3)
    story.update(word=OTHER, version=2, at=2, until=5)
    story.update(word=third, version=3, at=2, until=5)
    assert story.judged(memory(word=third, version=3)).is_clean


def test_what_a_queued_write_made_says_its_text_too_and_was_never_erased(story: Story) -> None:
    for word in (OWN, OTHER):
        story.write("m2", word=word, told={"markers": [word]})
    story.forget("m2", mode="HARD")
    assert erased(story.entries, [], []) == [OWN, OTHER]
    story.write("", word=OWN, told={"action": "QUEUED", "operation": "o"}, asked={"delivery": "QUEUED"})
    story.write("", word=OTHER, told={"action": "QUEUED", "operation": "p"}, asked={"delivery": "QUEUED"})
    story.call("operation", {"operation": "o"}, code="UNAVAILABLE")
    story.call("operation", {"operation": "o"}, {"done": True, "id": "m1", "operation": "o", "markers": []})
    story.forget("m1", mode="SOFT")
    never_asked = FinalOperation(name="p", done=True, code="", memory_id="m3", state="ACTIVE")
    assert erased(story.entries, [], [never_asked]) == []
