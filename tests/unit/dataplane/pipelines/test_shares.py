from hypothesis import given
from hypothesis import strategies as st

from dataplane.pipelines.shares import shares

ITEMS = st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=60)


@given(ITEMS, st.integers(1, 20))
def test_every_item_is_in_one_share_and_a_key_in_one_alone(items: list[tuple[int, int]], most: int) -> None:
    dealt = shares(items, lambda item: item[0], most)
    assert sorted(item for share in dealt for item in share) == sorted(items)
    assert len(dealt) == min(most, len({key for key, _ in items}))
    for key in range(10):
        kept = [[item for item in share if item[0] == key] for share in dealt]
        assert [found for found in kept if found] in ([], [[item for item in items if item[0] == key]])
