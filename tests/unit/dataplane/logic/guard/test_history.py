from dataplane.logic.guard.history import ATTACK_MEMORY_US, WRITERS, Past, Writer, WriterHistory, overlap

ANN = Writer("p1", "a.b", 3, "ann")
WORDS = frozenset(["the", "season", "has", "many", "episodes"])


def test_near_alike_statements_within_the_window_are_counted() -> None:
    history = WriterHistory()
    for time_us in (0, 10, 20):
        history.note(ANN, WORDS, time_us, is_attack=False)
    assert history.past(ANN, WORDS | {"now"}, 10, 0.5, 30) == Past(2, 0)
    assert history.past(ANN, frozenset(["quite", "another", "thing", "here"]), 0, 0.5, 30) == Past(0, 0)
    assert history.past(Writer("p2", "a.b", 3, "ann"), WORDS, 0, 0.5, 30) == Past(0, 0)


def test_attacks_are_held_against_a_writer_for_an_hour() -> None:
    history = WriterHistory()
    history.note(ANN, WORDS, 0, is_attack=True)
    assert history.past(ANN, WORDS, 0, 0.5, ATTACK_MEMORY_US).attacks == 1
    assert history.past(ANN, WORDS, 0, 0.5, ATTACK_MEMORY_US + 1).attacks == 0


def test_what_is_remembered_is_bounded() -> None:
    history = WriterHistory()
    for number in range(WRITERS + 1):
        history.note(Writer(str(number), "a", 3, ""), WORDS, 0, is_attack=True)
    assert history.past(Writer("0", "a", 3, ""), WORDS, 0, 0.5, 0) == Past(0, 0)
    assert history.past(Writer(str(WRITERS), "a", 3, ""), WORDS, 0, 0.5, 0) == Past(1, 1)


def test_short_statements_are_alike_to_none() -> None:
    assert overlap(frozenset({"ok", "thanks"}), frozenset({"ok", "thanks"})) == 0.0
    assert overlap(WORDS, WORDS) == 1.0
