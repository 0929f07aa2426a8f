"""Where runs of faulty memories begin, and how long they are."""

from dataplane.pipelines.rebuild import runs


def test_runs_begin_after_the_memory_before_them() -> None:
    ids = ["b", "c", "d", "e", "f"]
    assert runs("a", ids, set()) == []
    assert runs("a", ids, set(ids)) == [("a", 5)]
    assert runs("a", ids, {"b", "d", "e"}) == [("a", 1), ("c", 2)]
    assert runs("a", ids, {"f"}) == [("e", 1)]
    assert runs("", ["b"], {"b"}) == [("", 1)]
