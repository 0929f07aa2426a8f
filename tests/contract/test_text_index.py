from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.logic.tokens import query_tokens, tokens
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, Candidate, Filter, Scope
from dataplane.ports import TextIndex
from tests.contract.index_suite import A, B, IndexContract, Searching, deadline, entry, ids, upsert, versions

ODD_TOKENS = [
    "inv-2024/0031",
    "c:\\repo\\a.py",
    "(",
    "*",
    '"',
    "~",
    "+",
    "x",
    "精排",
    "👨‍👩‍👧",
    "a b",
    "\ud83d",
    "x" * 5000,
]
ODD_QUERIES = ["the of", "C:\\repo\\a.py", "foo AND (", "*", '"', "~", "", "x", ")", "的", "\ud83d"]


@pytest.fixture(params=["edge", "inmemory", "elasticsearch", "tsvector"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TextIndex]:
    opened: TextIndex
    if request.param == "edge":
        opened = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    elif request.param == "elasticsearch":
        hosts = (request.getfixturevalue("elasticsearch_url"),)
        opened = await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=hosts, shards=2, replicas=0), "rule-1")
    elif request.param == "tsvector":
        opened = await PostgresTextIndex.open(request.getfixturevalue("postgres_options"), "rule-1", deadline())
    else:
        opened = InMemoryTextIndex()
    yield opened
    await opened.close()


@pytest.fixture
def find(index: TextIndex) -> Searching:
    async def search(scope: Scope, filter: Filter = EVERYTHING, top_k: int = 1000) -> list[Candidate]:
        return await index.search(scope, ("common",), filter, top_k, deadline())

    return search


async def fill(index: TextIndex, *texts: str) -> None:
    await upsert(index, [entry(text, tokens=tokens(text)) for text in texts])


async def ask(index: TextIndex, query: str) -> list[str]:
    return ids(await index.search(A, query_tokens(query), EVERYTHING, 10, deadline()))


class TestTextIndex(IndexContract):
    async def test_finds_a_word_inside_a_chinese_clause(self, index: TextIndex) -> None:
        await fill(index, "我们最近配置的rerank精排模型是bge", "今天天气很好")
        for query in ("精排", "精排模型", "rerank", "bge", "配置"):
            assert await ask(index, query) == ["我们最近配置的rerank精排模型是bge"], query

    async def test_an_identifier_is_found_whole_and_alone(self, index: TextIndex) -> None:
        await fill(index, "the X-200 pump", "the X-2000 pump", "invoice INV-2024/0031", "invoice INV-2024/0032")
        assert await ask(index, "X-200") == ["the X-200 pump"]
        assert await ask(index, "inv-2024/0031") == ["invoice INV-2024/0031"]

    async def test_full_width_and_case_do_not_matter(self, index: TextIndex) -> None:
        await fill(index, "Order ＡＢＣ１２３ shipped")
        assert await ask(index, "abc123") == ["Order ＡＢＣ１２３ shipped"]

    async def test_rare_tokens_weigh_more_and_repeats_weigh_less_each(self, index: TextIndex) -> None:
        for memory_id, found in {
            "common": ("pump",),
            "twice": ("pump", "pump"),
            "rare": ("valve",),
            "other": ("pump", "red", "blue"),
        }.items():
            await upsert(index, [entry(memory_id, tokens=found)])
        found = await index.search(A, ("pump", "valve"), EVERYTHING, 10, deadline())
        assert ids(found) == ["rare", "twice", "common", "other"]

    async def test_scores_do_not_depend_on_other_namespaces(self, index: TextIndex) -> None:
        await upsert(index, [entry("one", tokens=("pump", "red")), entry("two", tokens=("valve",))])
        before = await index.search(A, ("pump",), EVERYTHING, 10, deadline())
        await upsert(index, [entry(f"b{n}", "dept.b", tokens=("pump", "a", "b")) for n in range(50)])
        after = await index.search(A, ("pump",), EVERYTHING, 10, deadline())
        assert ids(after) == ids(before) == ["one"]
        assert after[0].score == pytest.approx(before[0].score)

    async def test_edge_and_reference_score_alike(self, tmp_path: Path) -> None:
        edge, reference = EdgeTextIndex.open(tmp_path / "text", "rule-1"), InMemoryTextIndex()
        texts = ["red pump red", "blue pump", "a red valve and a long tail of words", "中文 pump", "nothing"]
        for index in (edge, reference):
            await upsert(
                index, [entry(text, "dept.b" if "blue" in text else "dept.a", tokens=tokens(text)) for text in texts]
            )
        for scope in (A, B, SYSTEM_SCOPE):
            query = query_tokens("red pump 中文")
            got = await edge.search(scope, query, EVERYTHING, 10, deadline())
            want = await reference.search(scope, query, EVERYTHING, 10, deadline())
            assert ids(got) == ids(want)
            assert [hit.score for hit in got] == pytest.approx([hit.score for hit in want], rel=1e-5)
        await edge.close()

    async def test_odd_tokens_are_found_as_they_are(self, index: TextIndex) -> None:
        await upsert(index, [entry(str(at), tokens=(token, "y")) for at, token in enumerate(ODD_TOKENS)])
        for at, token in enumerate(ODD_TOKENS):
            assert ids(await index.search(A, (token,), EVERYTHING, 10, deadline())) == [str(at)], token

    async def test_odd_queries_do_no_harm(self, index: TextIndex) -> None:
        await fill(index, "plain words", "see C:\\repo\\a.py", "foo and bar", "the end of x", "我的")
        for query in ODD_QUERIES:
            found = await ask(index, query)
            assert query_tokens(query) or found == [], query
        assert await ask(index, "C:\\repo\\a.py") == ["see C:\\repo\\a.py"]

    async def test_no_tokens_find_nothing(self, index: TextIndex) -> None:
        await upsert(index, [entry("none", tokens=()), entry("some")])
        assert await index.search(A, (), EVERYTHING, 10, deadline()) == []
        assert ids(await index.search(A, ("common",), EVERYTHING, 10, deadline())) == ["some"]
        assert set(await versions(index)) == {"none", "some"}
