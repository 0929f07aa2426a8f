"""What the text index on Elasticsearch promises beyond its port, on a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import PAGE, ElasticsearchTextIndex
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.errors import BackendUnavailable, EntriesRefused, Misconfigured
from dataplane.logic.tokens import query_tokens, tokens
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, Condition, IndexKey, Operator, Scope
from tests.contract.index_suite import A, B, deadline, entry, ids

ALIAS = "memplane-text-rule-1"
TEXTS = ["red pump red", "blue pump", "a red valve and a long tail of many other words", "中文 pump pump pump", "none"]


@pytest.fixture
def options(elasticsearch_url: str) -> ElasticsearchOptions:
    return ElasticsearchOptions(hosts=(elasticsearch_url,), shards=2, replicas=0)


@pytest.fixture
async def index(options: ElasticsearchOptions) -> AsyncIterator[ElasticsearchTextIndex]:
    opened = await ElasticsearchTextIndex.open(options, "rule-1")
    yield opened
    await opened.close()


@pytest.fixture
async def http(elasticsearch_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=elasticsearch_url, trust_env=False) as client:
        yield client


async def find(index: ElasticsearchTextIndex, *asked: str, scope: Scope = A, top_k: int = 10) -> list[str]:
    await index.flush(deadline())
    return ids(await index.search(scope, asked, EVERYTHING, top_k, deadline()))


async def problems(index: ElasticsearchTextIndex) -> set[str]:
    return {problem.code for problem in (await index.examine(deadline())).problems}


async def test_scores_are_those_of_the_reference(index: ElasticsearchTextIndex) -> None:
    reference = InMemoryTextIndex()
    for each in (index, reference):
        places = {text: "dept.b" if "blue" in text else "dept.a" for text in TEXTS}
        await each.upsert([entry(text, place, tokens=tokens(text)) for text, place in places.items()], deadline())
    await index.flush(deadline())
    for scope in (A, B, Scope(("dept.a", "dept.b")), SYSTEM_SCOPE):
        asked = query_tokens("red pump 中文")
        got = await index.search(scope, asked, EVERYTHING, 10, deadline())
        want = await reference.search(scope, asked, EVERYTHING, 10, deadline())
        assert ids(got) == ids(want)
        assert [hit.score for hit in got] == pytest.approx([hit.score for hit in want], rel=0.03)


async def test_a_hit_names_the_tokens_it_holds(index: ElasticsearchTextIndex) -> None:
    await index.upsert([entry("one", tokens=("red", "pump", "a b")), entry("two", tokens=("blue",))], deadline())
    await index.flush(deadline())
    found = await index.search(A, ("blue", "a b", "green", "red"), EVERYTHING, 10, deadline())
    assert {hit.memory_id: hit.terms for hit in found} == {"one": ("a b", "red"), "two": ("blue",)}


async def test_written_is_held_at_once_and_found_after_a_flush(index: ElasticsearchTextIndex) -> None:
    await index.upsert([entry("one", version=4)], deadline())
    held = await index.held([IndexKey("one", "dept.a"), IndexKey("two", "dept.a")], deadline())
    assert {name: (each.version, each.namespace) for name, each in held.items()} == {"one": (4, "dept.a")}
    assert await index.search(A, ("common",), EVERYTHING, 10, deadline()) == []
    assert await find(index, "common") == ["one"]


async def test_an_older_version_never_replaces_a_newer_one(index: ElasticsearchTextIndex) -> None:
    await index.upsert([entry("one", version=5, tokens=("new",))], deadline())
    await index.upsert([entry("one", version=4, tokens=("old",)), entry("two", tokens=("old",))], deadline())
    assert await find(index, "old", "new") == ["one", "two"]
    assert await find(index, "old") == ["two"]


async def test_what_was_deleted_can_come_back_with_any_version(index: ElasticsearchTextIndex) -> None:
    await index.upsert([entry("one", version=5)], deadline())
    await index.delete([IndexKey("one", "dept.a")], deadline())
    for version in (4, 5, 6, 7):
        await index.upsert([entry("one", version=version)], deadline())
        held = await index.held([IndexKey("one", "dept.a")], deadline())
        assert held["one"].version == version


async def test_one_entry_that_cannot_be_indexed_leaves_the_others(index: ElasticsearchTextIndex) -> None:
    bad = entry("bad", "n" * 40_000)
    with pytest.raises(EntriesRefused) as refused:
        await index.upsert([entry("one"), bad, entry("two")], deadline())
    assert set(refused.value.reasons) == {"bad"}
    assert "nnn" not in refused.value.reasons["bad"]
    assert set(await find(index, "common")) == {"one", "two"}


async def test_a_read_only_index_is_told_and_nothing_is_lost(
    index: ElasticsearchTextIndex, options: ElasticsearchOptions, http: httpx.AsyncClient
) -> None:
    await index.upsert([entry("one")], deadline())
    blocks = {"index.blocks.read_only_allow_delete": True}
    (await http.put(f"/{ALIAS}/_settings", json=blocks)).raise_for_status()
    with pytest.raises(BackendUnavailable, match="read-only"):
        await index.upsert([entry("two")], deadline())
    assert await problems(index) == {"READ_ONLY"}
    with pytest.raises(Misconfigured, match="free space"):
        await ElasticsearchTextIndex.open(options, "rule-1")
    (await http.put(f"/{ALIAS}/_settings", json=dict.fromkeys(blocks))).raise_for_status()
    await index.upsert([entry("two")], deadline())
    assert set(await find(index, "common")) == {"one", "two"}


async def remove_index(http: httpx.AsyncClient) -> None:
    """Deletes what lies behind the alias, and the template, which an index made anew needs."""
    for path in (f"/{ALIAS}.g000001", f"/_index_template/{ALIAS}"):
        (await http.delete(path)).raise_for_status()


async def mapping(http: httpx.AsyncClient) -> object:
    (described,) = (await http.get(f"/{ALIAS}")).json().values()
    return described["mappings"]


async def test_an_index_that_is_gone_is_told_and_never_looks_empty(
    index: ElasticsearchTextIndex, options: ElasticsearchOptions, http: httpx.AsyncClient
) -> None:
    await index.save_beacon("plane-1", 1, deadline())
    await remove_index(http)
    for call in (
        index.search(A, ("common",), EVERYTHING, 10, deadline()),
        index.search(A, ("common",), Condition("metadata.n", Operator.GREATER_THAN, (2**60,)), 10, deadline()),
        index.rows(A, ["one"], deadline()),
        index.held([IndexKey("one", "dept.a")], deadline()),
        index.versions(deadline()),
        index.count(deadline()),
        index.flush(deadline()),
    ):
        with pytest.raises(BackendUnavailable, match="lost the index"):
            await call
    assert await index.beacons(deadline()) == {}
    assert (await http.get("/_cat/indices?format=json")).json() == []
    assert await problems(index) == {"INDEX_MISSING"}
    again = await ElasticsearchTextIndex.open(options, "rule-1")
    assert again.recreated
    await again.close()
    assert await problems(index) == set()


@pytest.mark.parametrize("write", ["upsert", "delete"])
async def test_a_write_makes_an_index_that_is_gone_anew_as_it_was(
    index: ElasticsearchTextIndex, http: httpx.AsyncClient, write: str
) -> None:
    before = await mapping(http)
    await index.save_beacon("plane-1", 1, deadline())
    await remove_index(http)
    if write == "upsert":
        await index.upsert([entry("one", row=b"row")], deadline())
        assert await find(index, "common") == ["one"]
        assert await index.rows(A, ["one"], deadline()) == {"one": b"row"}
    else:
        await index.delete([IndexKey("one", "dept.a")], deadline())
    assert await mapping(http) == before
    assert await index.beacons(deadline()) == {}
    assert await problems(index) == set()


async def test_a_beacon_makes_an_index_that_is_gone_anew_and_is_not_kept(
    index: ElasticsearchTextIndex, http: httpx.AsyncClient
) -> None:
    before = await mapping(http)
    await index.upsert([entry("one")], deadline())
    await remove_index(http)
    with pytest.raises(BackendUnavailable, match="made anew, empty"):
        await index.save_beacon("plane-1", 1, deadline())
    assert await mapping(http) == before
    assert (await index.beacons(deadline()), await index.count(deadline())) == ({}, 0)
    await index.save_beacon("plane-1", 2, deadline())
    assert await index.beacons(deadline()) == {"plane-1": 2}


async def test_an_index_that_lost_its_alias_is_replaced(index: ElasticsearchTextIndex, http: httpx.AsyncClient) -> None:
    await index.upsert([entry("one")], deadline())
    (await http.delete(f"/{ALIAS}.g000001/_alias/{ALIAS}")).raise_for_status()
    await index.upsert([entry("two")], deadline())
    assert await find(index, "common") == ["two"]
    assert [each["index"] for each in (await http.get("/_cat/indices?format=json")).json()] == [f"{ALIAS}.g000002"]


async def test_data_planes_that_write_at_once_make_one_index_anew(
    options: ElasticsearchOptions, http: httpx.AsyncClient
) -> None:
    planes = [await ElasticsearchTextIndex.open(options, "rule-1") for _ in range(4)]
    await remove_index(http)
    names = [f"mem_{number}" for number in range(40)]
    tries = [plane.upsert([entry(name)], deadline()) for name, plane in zip(names, planes * 10, strict=True)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    taken = {name for name, outcome in zip(names, outcomes, strict=True) if outcome is None}
    assert all(outcome is None or isinstance(outcome, BackendUnavailable) for outcome in outcomes)
    await planes[0].flush(deadline())
    assert set(await planes[0].versions(deadline())) >= taken
    assert len((await http.get("/_cat/indices?format=json")).json()) == 1
    assert len(taken) > len(names) / 2
    for plane in planes:
        await plane.close()


async def test_a_beacon_is_read_back_from_the_disk(index: ElasticsearchTextIndex, http: httpx.AsyncClient) -> None:
    await index.save_beacon("plane-1", 5, deadline())
    (await http.post(f"/{ALIAS}/_close")).raise_for_status()
    with pytest.raises(BackendUnavailable):
        await index.beacons(deadline())
    (await http.post(f"/{ALIAS}/_open")).raise_for_status()
    (await http.get(f"/_cluster/health/{ALIAS}?wait_for_status=green&timeout=30s")).raise_for_status()
    assert await index.beacons(deadline()) == {"plane-1": 5}


async def test_copies_that_have_no_node_are_told(options: ElasticsearchOptions, http: httpx.AsyncClient) -> None:
    opened = await ElasticsearchTextIndex.open(
        ElasticsearchOptions(hosts=options.hosts, prefix="copies", replicas=1), "rule-1"
    )
    (problem,) = (await opened.examine(deadline())).problems
    assert problem.code == "COPIES_MISSING"
    assert "set replicas to 0" in problem.message
    await opened.close()


async def test_somebody_elses_index_is_not_touched(options: ElasticsearchOptions, http: httpx.AsyncClient) -> None:
    (await http.put("/theirs", json={"aliases": {ALIAS: {}}})).raise_for_status()
    with pytest.raises(Misconfigured, match="theirs was made by another program"):
        await ElasticsearchTextIndex.open(options, "rule-1")


async def test_data_planes_that_start_together_make_one_index(options: ElasticsearchOptions) -> None:
    opened = await asyncio.gather(*[ElasticsearchTextIndex.open(options, "rule-1") for _ in range(4)])
    await opened[0].upsert([entry("one")], deadline())
    assert await find(opened[3], "common") == ["one"]
    for each in opened:
        assert (await each.examine(deadline())).server.startswith("Elasticsearch 8.")
        await each.close()


async def test_searches_during_a_clear_find_what_was_there_or_nothing(
    index: ElasticsearchTextIndex, http: httpx.AsyncClient
) -> None:
    await index.upsert([entry("one")], deadline())
    assert await find(index, "common") == ["one"]
    clearing = asyncio.create_task(index.clear(deadline()))
    while not clearing.done():
        with suppress(BackendUnavailable):  # of a search that runs while its index is removed
            assert set(ids(await index.search(A, ("common",), EVERYTHING, 10, deadline()))) <= {"one"}
    await clearing
    indices = (await http.get("/_cat/indices?format=json")).json()
    assert [each["index"] for each in indices] == [f"{ALIAS}.g000002"]


async def test_a_clear_removes_what_one_that_was_cut_short_left_behind(
    index: ElasticsearchTextIndex, http: httpx.AsyncClient
) -> None:
    (await http.put(f"/{ALIAS}.g000002")).raise_for_status()
    await index.clear(deadline())
    indices = (await http.get("/_cat/indices?format=json")).json()
    assert [each["index"] for each in indices] == [f"{ALIAS}.g000003"]
    await index.upsert([entry("one")], deadline())
    assert await find(index, "common") == ["one"]


async def test_more_hits_than_a_page_holds(index: ElasticsearchTextIndex) -> None:
    await index.upsert([entry(f"mem_{number}") for number in range(PAGE + 50)], deadline())
    assert len(set(await find(index, "common", top_k=PAGE + 20))) == PAGE + 20
    assert len(await index.versions(deadline())) == await index.count(deadline()) == PAGE + 50


async def test_a_query_of_ten_thousand_tokens_finds_by_each(index: ElasticsearchTextIndex) -> None:
    asked = [f"t{number}" for number in range(10_000)]
    await index.upsert([entry(name, tokens=(name,)) for name in ("t0", "t900", "t9999", "other")], deadline())
    assert set(await find(index, *asked)) == {"t0", "t900", "t9999"}


async def test_a_scope_of_many_namespaces_is_searched_whole(index: ElasticsearchTextIndex) -> None:
    names = [f"dept.team_{number}" for number in range(300)]
    await index.upsert([entry(name, name) for name in names], deadline())
    assert set(await find(index, "common", scope=Scope(tuple(names[:250])), top_k=1000)) == set(names[:250])


async def test_long_values_of_metadata_are_filtered_by(index: ElasticsearchTextIndex) -> None:
    values = ["x" * 16_000, "x" * 16_000 + "y"]
    await index.upsert([entry(value[-1], fields={"metadata.k": value}) for value in values], deadline())
    await index.flush(deadline())
    found = await index.search(A, ("common",), Condition("metadata.k", Operator.EQUALS, (values[1],)), 10, deadline())
    assert ids(found) == ["y"]
