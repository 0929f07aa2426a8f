from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataplane.logic.fusion import fuse
from dataplane.model import Candidate
from memplane.policy.retrieve import FusionPolicy

IDS = st.sampled_from([f"mem_{letter}" for letter in "abcdefgh"])
SCORES = st.integers(min_value=-20, max_value=20).map(float)
LISTS = st.dictionaries(
    st.sampled_from(["vector", "text", "recent"]),
    st.dictionaries(IDS, SCORES).map(lambda scores: [Candidate(one, 1, score) for one, score in scores.items()]),
)
POLICIES = st.builds(
    FusionPolicy,
    method=st.sampled_from(["zscore", "rrf"]),
    vector_weight=st.sampled_from([0.5, 1.0]),
    text_weight=st.sampled_from([0.5, 1.0]),
)


@given(LISTS, POLICIES, st.integers(min_value=0, max_value=10))
@settings(max_examples=200)
def test_every_listed_id_comes_once_and_fewer_are_a_beginning_of_all(
    lists: dict[str, list[Candidate]], policy: FusionPolicy, top_n: int
) -> None:
    everything = fuse(lists, policy, 100)
    assert sorted(everything) == sorted({one.memory_id for candidates in lists.values() for one in candidates})
    assert fuse(lists, policy, top_n) == everything[:top_n]


def listed(**scores: float) -> list[Candidate]:
    return [Candidate(memory_id, 1, score) for memory_id, score in scores.items()]


@given(LISTS, POLICIES)
@example(
    {
        "vector": listed(mem_a=1, mem_h=0, mem_b=0, mem_c=0, mem_d=1, mem_e=1, mem_f=1, mem_g=2),
        "text": listed(mem_a=0, mem_b=0, mem_g=0, mem_c=0, mem_h=1, mem_d=0, mem_e=0, mem_f=-1),
        "recent": listed(mem_a=0, mem_b=1, mem_c=1, mem_f=2, mem_h=1, mem_d=1),
    },
    FusionPolicy(method="rrf", vector_weight=1.0, text_weight=1.0),
)
@settings(max_examples=100)
def test_the_order_within_lists_and_of_lists_does_not_matter(
    lists: dict[str, list[Candidate]], policy: FusionPolicy
) -> None:
    turned = {name: candidates[::-1] for name, candidates in reversed(lists.items())}
    assert fuse(turned, policy, 100) == fuse(lists, policy, 100)


@given(st.dictionaries(IDS, SCORES, min_size=1), POLICIES)
@settings(max_examples=100)
def test_one_list_keeps_its_order(scores: dict[str, float], policy: FusionPolicy) -> None:
    fused = fuse({"vector": [Candidate(one, 1, score) for one, score in scores.items()]}, policy, 100)
    assert fused == sorted(scores, key=lambda one: (-scores[one], one))


@given(LISTS, POLICIES, st.floats(min_value=0.5, max_value=8.0), st.floats(min_value=-5.0, max_value=5.0))
@settings(max_examples=100)
def test_the_best_of_every_list_comes_first_on_any_scale(
    lists: dict[str, list[Candidate]], policy: FusionPolicy, factor: float, shift: float
) -> None:
    lists = {
        name: [
            *(Candidate(one.memory_id, 1, one.score * factor + shift) for one in candidates),
            Candidate("top", 1, 1e4),
        ]
        for name, candidates in lists.items()
    }
    assert fuse(lists, policy, 1) == (["top"] if lists else [])
