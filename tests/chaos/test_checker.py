"""The judge is judged: each kind of violation is found, and each innocent case that looks like one is not."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.chaos.checker import Report, check
from tests.chaos.history import Entry, FinalMemory, FinalOperation, FinalState, marker

NS, COMMON = "tenant-0.c00", "tenant-0.common"
OWN, OTHER, SHARED, FOREIGN = marker(0, 0, 1), marker(0, 0, 2), marker(0, 99, 1), marker(1, 1, 1)


class Story:
    """A history told call by call; each takes a second unless `until` says otherwise."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.now_s = 0.0

    def call(
        self,
        method: str,
        asked: dict[str, Any],
        told: dict[str, Any] | None = None,
        *,
        code: str = "OK",
        at: float | None = None,
        until: float | None = None,
        intent: int | None = None,
        attempt: int = 0,
        item: int = 0,
        tenant: int = 0,
        deadline_s: float = 5.0,
    ) -> Entry:
        start_s = self.now_s if at is None else at
        end_s = start_s + 1 if until is None else until
        entry = Entry(
            client=0,
            tenant=tenant,
            intent=len(self.entries) if intent is None else intent,
            method=method,
            start_s=start_s,
            end_s=end_s,
            item=item,
            attempt=attempt,
            deadline_s=deadline_s,
            code=code,
            asked=asked,
            told=told or {},
        )
        self.entries.append(entry)
        self.now_s = max(self.now_s, end_s)
        return entry

    def write(self, memory_id: str = "m1", word: str = OWN, **more: Any) -> Entry:
        asked = {"ns": more.pop("ns", NS), "subject": "s0", "kind": "FACT", "marker": word, "delivery": "SYNC"}
        asked |= more.pop("asked", {})
        told = {"action": "CREATED", "id": memory_id, "state": "ACTIVE", "version": 1, "token": f"t-{memory_id}"}
        told |= more.pop("told", {})
        failed = more.get("code", "OK") != "OK"
        return self.call("write", asked, {} if failed else told, **more)

    def update(self, memory_id: str = "m1", word: str = OTHER, version: int = 2, **more: Any) -> Entry:
        told = {"id": memory_id, "version": version, "token": f"t-{memory_id}-{version}"}
        failed = more.get("code", "OK") != "OK"
        return self.call("update", {"ns": NS, "id": memory_id, "marker": word}, {} if failed else told, **more)

    def forget(self, memory_id: str = "m1", mode: str = "SOFT", **more: Any) -> Entry:
        return self.call("forget", {"ns": more.pop("ns", NS), "id": memory_id, "mode": mode}, **more)

    def search(self, hits: Sequence[tuple[str, int, str]], word: str = OWN, **more: Any) -> Entry:
        namespace = more.pop("ns", NS)
        asked = {"ns": namespace, "marker": word, "token": more.pop("token", "")}
        told = {
            "hits": [(*hit, namespace) for hit in hits],
            "markers": [hit[2] for hit in hits],
            "degraded": more.pop("degraded", []),
        }
        return self.call("search", asked, told, **more)

    def judged(self, *memories: FinalMemory, operations: Sequence[FinalOperation] = (), **more: Any) -> Report:
        final = FinalState(memories=memories, operations=tuple(operations), raw_leftovers=more.pop("raw", ()))
        return check(self.entries, final, **more)


@pytest.fixture
def story() -> Story:
    return Story()


def memory(memory_id: str = "m1", word: str = OWN, state: str = "ACTIVE", version: int = 1, **more: Any) -> FinalMemory:
    fields: dict[str, Any] = {"tenant": 0, "namespace": NS, "subject": "s0", "kind": "FACT"} | more
    return FinalMemory(id=memory_id, marker=word, state=state, version=version, **fields)


def fact(story: Story, memory_id: str, word: str, **more: Any) -> Entry:
    return story.write(memory_id, word, asked={"fact_key": "k"}, **more)


def kinds(report: Report) -> list[str]:
    return sorted(kind for kind, _ in report.found)


# Violations.


def test_a_write_that_is_gone_is_lost(story: Story) -> None:
    story.write()
    report = story.judged()
    assert kinds(report) == ["lost"]
    assert report.line(faults=3) == (
        "acknowledged=1 faults=3 lost=1 doubled=0 resurrected=0 leaked=0 unmarked=0 late=0"
    )


def test_a_write_that_somebody_hid_unasked_is_lost(story: Story) -> None:
    story.write()
    assert kinds(story.judged(memory(state="SOFT_DELETED"))) == ["lost"]


def test_a_statement_superseded_by_nothing_is_lost(story: Story) -> None:
    fact(story, "m1", OWN)
    assert "lost" in kinds(story.judged(memory(state="SUPERSEDED", fact_key="k")))


def test_a_fact_of_which_no_statement_is_left_is_lost(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER)
    superseded = [memory("m1", OWN, "SUPERSEDED", fact_key="k"), memory("m2", OTHER, "SUPERSEDED", fact_key="k")]
    assert "lost" in kinds(story.judged(*superseded))


def test_an_older_statement_cannot_replace_a_newer_one(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER)
    ended = [memory("m1", OWN, fact_key="k"), memory("m2", OTHER, "SUPERSEDED", fact_key="k")]
    assert kinds(story.judged(*ended)) == ["lost"]
    assert story.judged(*ended, clocks_skewed=True).is_clean


def test_a_removal_before_a_write_does_not_explain_that_it_is_gone(story: Story) -> None:
    story.write("m1", SHARED)
    story.forget("m1", "HARD")
    story.write("m2", SHARED)
    assert kinds(story.judged()) == ["lost"]


def test_a_change_that_is_gone_is_lost(story: Story) -> None:
    story.write()
    story.update()
    assert kinds(story.judged(memory(version=1))) == ["lost"]


def test_one_version_of_two_changes_lost_one(story: Story) -> None:
    story.write()
    story.update(word=OTHER, version=2, at=2, until=4)
    story.update(word=marker(0, 0, 3), version=2, at=2, until=4)
    assert kinds(story.judged(memory(word=OTHER, version=2))) == ["lost"]


@pytest.mark.parametrize(
    "operation",
    [
        FinalOperation(name="o", done=False, code=""),
        FinalOperation(name="o", done=False, code="NOT_FOUND"),
        FinalOperation(name="o", done=True, code="UNAVAILABLE"),
    ],
)
def test_a_queued_write_that_was_never_decided_is_lost(story: Story, operation: FinalOperation) -> None:
    story.write("", told={"action": "QUEUED", "operation": "o"}, asked={"delivery": "QUEUED"})
    assert kinds(story.judged(operations=[operation])) == ["lost"]


def test_a_queued_write_whose_memory_is_gone_is_lost(story: Story) -> None:
    story.write("", told={"action": "QUEUED", "operation": "o"}, asked={"delivery": "QUEUED"})
    done = FinalOperation(name="o", done=True, code="", memory_id="m1", state="ACTIVE")
    assert kinds(story.judged(operations=[done])) == ["lost"]


def test_a_search_with_the_token_of_a_write_misses_it(story: Story) -> None:
    story.write()
    story.search([], token="t-m1")
    assert kinds(story.judged(memory())) == ["lost"]


def test_two_memories_of_one_statement_are_double(story: Story) -> None:
    story.write("m1", SHARED)
    story.write("m1", SHARED)
    assert kinds(story.judged(memory("m1", SHARED), memory("m2", SHARED))) == ["doubled"]


def test_two_memories_of_one_fact_are_double(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER)
    assert kinds(story.judged(memory("m1", OWN, fact_key="k"), memory("m2", OTHER, fact_key="k"))) == ["doubled"]


def test_one_write_seen_as_two_memories_is_double(story: Story) -> None:
    story.write()
    story.forget()
    story.search([("m2", 1, OWN)])
    assert "doubled" in kinds(story.judged(memory(state="SOFT_DELETED")))


def test_one_request_with_two_outcomes_is_double(story: Story) -> None:
    story.write("m1", SHARED, intent=0)
    story.write("m2", SHARED, intent=0, attempt=1)
    assert "doubled" in kinds(story.judged(memory("m1", SHARED)))


def test_an_answer_with_two_memories_of_one_statement_is_double(story: Story) -> None:
    story.write("m1", SHARED)
    story.search([("m1", 1, SHARED), ("m2", 1, SHARED)], word=SHARED)
    assert kinds(story.judged(memory("m1", SHARED))) == ["doubled"]


@pytest.mark.parametrize("mode", ["SOFT", "HARD"])
def test_a_forgotten_memory_that_a_search_returns_is_resurrected(story: Story, mode: str) -> None:
    story.write()
    story.forget(mode=mode)
    story.search([("m1", 1, OWN)], degraded=["record_store"])
    ended = [memory(state="SOFT_DELETED")] if mode == "SOFT" else []
    assert kinds(story.judged(*ended)) == ["resurrected"]


def test_a_forgotten_memory_that_is_read_by_id_is_resurrected(story: Story) -> None:
    story.write()
    story.forget()
    story.call("get", {"ns": NS, "id": "m1"}, {"hits": [("m1", 1, OWN, NS)], "version": 1})
    assert kinds(story.judged(memory(state="SOFT_DELETED"))) == ["resurrected"]


def test_a_forgotten_text_in_a_context_is_resurrected(story: Story) -> None:
    story.write()
    story.forget()
    story.call("context", {"ns": NS, "marker": OTHER}, {"ids": [], "markers": [OWN]})
    assert kinds(story.judged(memory(state="SOFT_DELETED"))) == ["resurrected"]


@pytest.mark.parametrize(("mode", "state"), [("SOFT", "ACTIVE"), ("HARD", "ACTIVE"), ("HARD", "SOFT_DELETED")])
def test_a_forgotten_memory_that_is_there_at_the_end_is_resurrected(story: Story, mode: str, state: str) -> None:
    story.write()
    story.forget(mode=mode)
    assert "resurrected" in kinds(story.judged(memory(state=state)))


def test_a_write_merged_into_a_forgotten_memory_is_resurrected(story: Story) -> None:
    story.write("m1", SHARED)
    story.forget()
    story.write("m1", SHARED, told={"action": "MERGED"})
    assert "resurrected" in kinds(story.judged(memory("m1", SHARED)))


def test_an_erased_text_in_the_files_is_resurrected(story: Story) -> None:
    assert kinds(story.judged(raw=("data-1/records.db: mk",))) == ["resurrected"]


def test_another_tenants_text_in_an_answer_is_leaked(story: Story) -> None:
    story.search([("m9", 1, FOREIGN)], word=FOREIGN)
    assert kinds(story.judged()) == ["leaked"]


def test_another_tenants_text_in_an_error_is_leaked(story: Story) -> None:
    story.call("get", {"ns": NS, "id": "m9"}, {"markers": [FOREIGN]}, code="NOT_FOUND")
    assert kinds(story.judged()) == ["leaked"]


def test_a_good_answer_in_another_tenants_namespace_is_leaked(story: Story) -> None:
    story.call("search", {"ns": "tenant-1.common", "marker": FOREIGN, "foreign": True}, {"hits": []})
    assert kinds(story.judged()) == ["leaked"]


def test_a_memory_in_another_namespace_is_leaked(story: Story) -> None:
    story.write()
    assert kinds(story.judged(memory(namespace="tenant-1.common"))) == ["leaked"]


def test_a_search_that_misses_a_settled_memory_in_silence_is_unmarked(story: Story) -> None:
    story.write()
    story.search([], at=10)
    assert kinds(story.judged(memory())) == ["unmarked"]


def test_an_old_version_after_an_acknowledged_change_is_unmarked(story: Story) -> None:
    story.write()
    story.update()
    story.search([("m1", 1, OWN)], word=OTHER, token="t-m1-2")
    assert "unmarked" in kinds(story.judged(memory(word=OTHER, version=2)))


def test_a_replaced_statement_in_an_answer_is_unmarked(story: Story) -> None:
    fact(story, "m1", OWN)
    fact(story, "m2", OTHER, told={"superseded": ["m1"]})
    story.search([("m2", 1, OTHER), ("m1", 1, OWN)], word=OTHER, token="t-m2")
    ended = [memory("m1", OWN, "SUPERSEDED", fact_key="k"), memory("m2", OTHER, fact_key="k")]
    assert kinds(story.judged(*ended)) == ["unmarked"]


def test_a_memory_that_is_there_and_not_found_by_id_is_unmarked(story: Story) -> None:
    story.write()
    story.call("get", {"ns": NS, "id": "m1"}, code="NOT_FOUND")
    assert kinds(story.judged(memory())) == ["unmarked"]


def test_a_whole_list_without_a_memory_is_unmarked(story: Story) -> None:
    story.write("m1", OWN)
    story.write("m2", OTHER)
    asked = {"ns": NS, "subject": "s0"}
    story.call("list", asked, {"hits": [("m2", 1, OTHER, NS)], "last": False}, intent=9)
    story.call("list", asked, {"hits": [], "last": True}, intent=9, item=1)
    assert kinds(story.judged(memory(), memory("m2", OTHER))) == ["unmarked"]


def test_a_queued_answer_to_a_synchronous_write_must_say_why(story: Story) -> None:
    story.write("", told={"action": "QUEUED", "operation": "o"})
    done = FinalOperation(name="o", done=True, code="", memory_id="m1", state="ACTIVE")
    assert kinds(story.judged(memory(), operations=[done])) == ["unmarked"]


def test_an_answer_after_its_deadline_is_late(story: Story) -> None:
    story.search([], at=0, until=1.3, deadline_s=1)
    assert kinds(story.judged()) == ["late"]


def test_a_call_that_is_never_answered_is_late(story: Story) -> None:
    entry = story.search([])
    story.entries[0] = Entry(
        client=0, tenant=0, intent=0, method="search", start_s=0, end_s=None, deadline_s=1, asked=entry.asked
    )
    assert kinds(story.judged()) == ["late"]
