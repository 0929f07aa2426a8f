"""Histories of a service that keeps its promises are clean; break one promise in them, and it is found."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chaos.checker import check
from tests.chaos.history import Entry, FinalMemory, FinalState, from_line, is_shared, tenant_of, to_line
from tests.chaos.imagined import Imagined
from tests.chaos.reads import SETTLED_S

Told = tuple[list[Entry], FinalState]
Break = Callable[[list[Entry], FinalState], Told | None]
SEEDS = st.integers(0, 2**32 - 1)


def imagined(seed: int) -> Told:
    service = Imagined(seed)
    final = service.run()
    return service.entries, final


@given(SEEDS)
@settings(max_examples=150)
def test_a_service_that_keeps_its_promises_is_clean(seed: int) -> None:
    entries, final = imagined(seed)
    report = check([from_line(to_line(entry)) for entry in entries], final)
    assert report.is_clean, report.violations
    assert report.acknowledged


def touched(entries: Sequence[Entry]) -> set[str]:
    return {entry.asked["id"] for entry in entries if entry.method in {"update", "forget"}}


def quiet(entries: Sequence[Entry], final: FinalState) -> list[tuple[Entry, FinalMemory]]:
    """Acknowledged writes whose memory nobody has touched since."""
    there = {memory.id: memory for memory in final.memories if memory.state == "ACTIVE" and not memory.fact_key}
    told = [(entry, entry.told.get("id", "")) for entry in entries if entry.method == "write" and entry.code == "OK"]
    return [(entry, there[known]) for entry, known in told if known in there and known not in touched(entries)]


def forgets(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.method == "forget" and entry.code == "OK"]


def dropped(entries: list[Entry], final: FinalState) -> Told | None:
    for _, gone in quiet(entries, final):
        return entries, FinalState(memories=tuple(memory for memory in final.memories if memory != gone))
    return None


def repeated(entries: list[Entry], final: FinalState) -> Told | None:
    for memory in final.memories:
        if memory.state == "ACTIVE":
            return entries, FinalState(memories=(*final.memories, replace(memory, id="again")))
    return None


def undeleted(entries: list[Entry], final: FinalState) -> Told | None:
    for entry in forgets(entries):
        others = [memory for memory in final.memories if memory.id != entry.asked["id"]]
        back = FinalMemory(
            id=entry.asked["id"], tenant=entry.tenant, namespace=entry.asked["ns"], subject="s", kind="FACT",
            state="ACTIVE", version=9, marker="mk-0-00-999999",
        )  # fmt: skip
        return entries, FinalState(memories=(*others, back))
    return None


def returned(entries: list[Entry], final: FinalState) -> Told | None:
    """A search that began after a removal was acknowledged shows what was removed."""
    for forget in forgets(entries):
        for place, entry in enumerate(entries):
            late = entry.method == "search" and entry.code == "OK" and entry.start_s > (forget.end_s or 0)
            if late and entry.tenant == forget.tenant:
                hit = (forget.asked["id"], 9, entry.asked["marker"], entry.asked["ns"])
                shown = replace(entry, told={**entry.told, "hits": [*entry.told["hits"], hit]})
                return [*entries[:place], shown, *entries[place + 1 :]], final
    return None


def crossed(entries: list[Entry], final: FinalState) -> Told | None:
    words = [entry.asked["marker"] for entry in entries if entry.method == "write"]
    for place, entry in enumerate(entries):
        others = [word for word in words if tenant_of(word) != entry.tenant]
        if entry.method == "search" and entry.code == "OK" and others:
            shown = replace(entry, told={**entry.told, "markers": [*entry.told["markers"], others[0]]})
            return [*entries[:place], shown, *entries[place + 1 :]], final
    return None


def swallowed(entries: list[Entry], final: FinalState) -> Told | None:
    """A search for a settled memory finds nothing and says nothing."""
    settled = {memory.marker: write for write, memory in quiet(entries, final)}
    for place, entry in enumerate(entries):
        write = settled.get(entry.asked.get("marker", "")) if entry.method == "search" else None
        if write is not None and entry.code == "OK" and entry.start_s - (write.end_s or 0) > SETTLED_S:
            silent = replace(entry, told={"hits": [], "markers": [], "degraded": []})
            return [*entries[:place], silent, *entries[place + 1 :]], final
    return None


def reverted(entries: list[Entry], final: FinalState) -> Told | None:
    """A change that was acknowledged last is not there any more."""
    for memory in final.memories:
        changes = [entry for entry in entries if entry.method == "update" and entry.asked["id"] == memory.id]
        if len(changes) == 1 and changes[0].code == "OK" and memory.state == "ACTIVE":
            old = replace(memory, version=memory.version - 1)
            return entries, FinalState(memories=tuple(old if one is memory else one for one in final.memories))
    return None


@pytest.mark.parametrize(
    ("breaks", "kind"),
    [
        (dropped, "lost"),
        (repeated, "doubled"),
        (undeleted, "resurrected"),
        (returned, "resurrected"),
        (crossed, "leaked"),
        (swallowed, "unmarked"),
        (reverted, "lost"),
    ],
)
def test_a_broken_promise_is_found(breaks: Break, kind: str) -> None:
    judged = 0
    for seed in range(60):
        broken = breaks(*imagined(seed))
        if broken is not None:
            judged += 1
            assert kind in check(*broken).counts, f"seed {seed}"
    assert judged >= 20


def test_shared_statements_meet_in_the_imagined_histories() -> None:
    entries, _ = imagined(7)
    merged = [entry for entry in entries if entry.told.get("action") == "MERGED"]
    assert any(is_shared(entry.asked["marker"]) for entry in merged)
