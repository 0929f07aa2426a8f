"""Whatever policies came and went, the index holds what was written last, and each namespace finds its own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.adapters.qdrant.calls import Connection
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, IndexKey, Scope
from memplane.policy.effective import lineage
from tests.contract.index_suite import DIMENSION, deadline, entry
from tests.peers.qdrant.local import LocalClient

NAMESPACES = ("dept.sales", "dept.salesforce", "dept.sales.a", "dept.sales-a", "dept", "x")
QUESTION = np.eye(DIMENSION, dtype=np.float32)[0]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """(verb, namespace, partition): writes under one policy or another, in which nothing or something above lies apart,
    deletions, and late repetitions of an older version."""
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        namespace = draw(st.sampled_from(NAMESPACES))
        verb = draw(st.sampled_from(["write", "write", "write", "delete", "repeat"]))
        steps.append((verb, namespace, draw(st.sampled_from(["", *lineage(namespace)]))))
    return steps


@settings(max_examples=60)
@given(history=histories())
async def test_searches_find_what_was_written_last(history: list[tuple[str, str, str]]) -> None:
    options = QdrantOptions(partition_refresh_s=0.01)
    index = await QdrantVectorIndex.over(Connection(LocalClient(), 5), options, "model-1", DIMENSION)
    expected: dict[str, int] = {}
    for version, (verb, namespace, partition) in enumerate(history, 1):
        if verb == "delete":
            await index.delete([IndexKey(namespace, namespace)], deadline())
            expected.pop(namespace, None)
        elif verb == "write" or namespace in expected:
            late = expected.get(namespace, 0) - 1 if verb == "repeat" else 0
            await index.upsert([entry(namespace, namespace, version=late or version, partition=partition)], deadline())
            expected[namespace] = max(late or version, expected.get(namespace, 0))
    held = await index.versions(deadline())
    assert {name: one.version for name, one in held.items()} == expected
    assert await index.held([IndexKey(name, name) for name in NAMESPACES], deadline()) == held
    hits = await index.search(SYSTEM_SCOPE, QUESTION, EVERYTHING, 100, 64, deadline())
    assert {hit.memory_id: hit.version for hit in hits} == expected
    for namespace in NAMESPACES:
        hits = await index.search(Scope((namespace,)), QUESTION, EVERYTHING, 100, 64, deadline())
        assert [(hit.memory_id, hit.version) for hit in hits] == [
            (namespace, expected[namespace]) for _ in range(namespace in expected)
        ]
    await index.close()
