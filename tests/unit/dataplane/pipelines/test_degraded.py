"""Notes of backends that did not take part."""

from dataplane.pipelines.degraded import DegradedNotes


def test_each_backend_is_named_once_with_its_first_reason() -> None:
    notes = DegradedNotes()
    notes.add("embedder", "BACKEND_UNAVAILABLE", "found by words")
    notes.add("embedder", "OVERLOADED", "not at all")
    notes.add("text_index", "BACKEND_UNAVAILABLE", "found by meaning")
    assert [(note.backend, note.reason) for note in notes.messages()] == [
        ("embedder", "BACKEND_UNAVAILABLE"),
        ("text_index", "BACKEND_UNAVAILABLE"),
    ]


def test_it_tells_whether_any_of_some_backends_is_missing() -> None:
    notes = DegradedNotes()
    notes.add("cache", "BACKEND_UNAVAILABLE", "slower")
    assert notes.any_of("embedder", "cache")
    assert not notes.any_of("embedder", "text_index")
