"""The leak test can fail: each fault put in on purpose is found."""

from typing import Any

import pytest

from dataplane.model import SYSTEM_SCOPE
from dataplane.pipelines import get, operations, sight
from dataplane.pipelines.caller import Caller
from dataplane.server import tokens
from memplane.errors import WrongState
from memplane.policy.access import AccessIndex
from memplane.policy.cells import ALL_CELLS
from tests.integration.harness import Plane
from tests.leak.judge import Verdicts
from tests.leak.planes import in_memory
from tests.leak.runner import Plan, Spoil, run, unspoilt
from tests.leak.sabotage import ONE_ADAPTER, SEEN_IN_ANSWERS, without_principal
from tests.leak.world import ADMIN, World

SEEDS = (3, 4, 5, 6)
LONGEST_S = 150.0
MOST_ROUNDS = 150
"""What a seed gets: rounds, so that a busy machine finds as much as an idle one."""


async def found(spoil: Spoil = unspoilt, *wanted: str, watches_ports: bool = True) -> Verdicts:
    """What a run comes to that ends with the first fault; another seed's where that is none of those `wanted`.

    Calls run at once, so that a seed does not settle which fault comes first.
    """
    verdicts = Verdicts()
    for seed in SEEDS:
        plan = Plan(seed, LONGEST_S, MOST_ROUNDS, until_fault=True, watches_ports=watches_ports)
        verdicts = await run(plan, in_memory, spoil)
        if verdicts.faults.keys() & (wanted or verdicts.faults.keys()):
            break
    return verdicts


@pytest.mark.parametrize("name", ONE_ADAPTER)
async def test_a_scope_that_one_adapter_forgets_is_found_at_its_port(name: str) -> None:
    assert (await found(ONE_ADAPTER[name], "scope")).faults["scope"]


@pytest.mark.parametrize("name", SEEN_IN_ANSWERS)
async def test_what_comes_of_a_forgotten_scope_is_found_in_answers(name: str) -> None:
    assert (await found(SEEN_IN_ANSWERS[name], watches_ports=False)).faults


async def test_answers_to_request_ids_that_are_found_whoever_asks_are_noticed() -> None:
    names = [each.name for each in World(conditions=True, labels={}).principals]
    assert (await found(without_principal([*names, ADMIN.name]))).faults


async def test_a_check_that_always_says_yes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessIndex, "allows", lambda *_: True)
    monkeypatch.setattr(AccessIndex, "cells", lambda *_: ALL_CELLS)
    assert (await found(unspoilt, "admitted")).faults["admitted"]


async def test_conditions_that_nobody_looks_at_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AccessIndex.cells

    def widened(self: AccessIndex, *arguments: Any) -> int:
        return ALL_CELLS if right(self, *arguments) else 0

    monkeypatch.setattr(AccessIndex, "cells", widened)
    kinds = ("hit", "row", "marker", "twins")
    assert set((await found(unspoilt, *kinds)).faults) & set(kinds)


async def test_a_cached_answer_without_the_callers_sight_in_its_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight.Sight, "words", "")
    assert set((await found(unspoilt, "hit", "marker")).faults) & {"hit", "marker"}


async def test_page_tokens_without_an_owner_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tokens._query_digest
    monkeypatch.setattr(tokens, "_query_digest", lambda request, _principal_id: right(request, ""))
    assert (await found(unspoilt, "token")).faults["token"]


async def test_page_tokens_that_any_query_may_use_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_query_digest", lambda *_: "")
    assert (await found(unspoilt, "token")).faults["token"]


async def test_operations_that_everybody_sees_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_sees", lambda *_: True)
    assert (await found()).faults


async def test_a_reload_that_changes_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Plane.use

    def first_alone(self: Plane, policy: Any, generation: int = 1) -> None:
        if generation == 1:
            right(self, policy, generation)

    monkeypatch.setattr(Plane, "use", first_alone)
    assert (await found()).faults


async def test_an_error_that_tells_what_is_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = get.find

    async def telling(store: Any, namespace: str, memory_id: str, now_us: int, deadline_s: float) -> Any:
        there = await store.get(SYSTEM_SCOPE, memory_id, deadline_s)
        if there is not None and there.namespace != namespace:
            raise WrongState(memory_id, "elsewhere")
        return await right(store, namespace, memory_id, now_us, deadline_s)

    monkeypatch.setattr(get, "find", telling)
    assert (await found(unspoilt, "twins")).faults["twins"]


async def test_a_denial_that_tells_what_exists_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Caller.may

    def telling(self: Caller, permission: str, namespace: str | None) -> bool:
        if namespace is not None and namespace.endswith("-none"):
            raise WrongState(namespace, "nowhere")
        return right(self, permission, namespace)

    monkeypatch.setattr(Caller, "may", telling)
    assert (await found(unspoilt, "twins")).faults["twins"]
