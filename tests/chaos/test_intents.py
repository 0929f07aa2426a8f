"""What clients want depends on the seed alone, and every statement is a statement of its own."""

from itertools import islice
from pathlib import Path

from dataplane.logic.dedup import says_the_same
from tests.chaos.history import Entry, HistoryWriter, marker, markers_in, read_history
from tests.chaos.intents import SHARES, intents, sentence


def test_a_client_wants_the_same_with_the_same_seed() -> None:
    assert list(islice(intents(7, 3), 200)) == list(islice(intents(7, 3), 200))


def test_clients_and_seeds_differ() -> None:
    wanted = [[intent.kind for intent in islice(intents(seed, client), 50)] for seed in (1, 2) for client in (0, 1)]
    assert len({tuple(kinds) for kinds in wanted}) == 4


def test_everything_is_wanted_sooner_or_later() -> None:
    assert {intent.kind for intent in islice(intents(1, 1), 3_000)} == set(SHARES)


def test_no_two_texts_of_a_client_have_one_number() -> None:
    last = -1
    for intent in islice(intents(1, 1), 500):
        assert intent.number > last
        last = intent.number + (intent.size - 1 if intent.kind == "batch" else 0)


def test_a_text_holds_its_marker_and_is_like_no_other() -> None:
    words = [marker(0, 1, number) for number in range(0, 400, 7)]
    assert all(markers_in(sentence(word)) == [word] for word in words)
    pairs = zip(words, words[1:] + words[:1], strict=True)
    assert not any(says_the_same(sentence(one), sentence(other)) for one, other in pairs)


def test_what_is_written_down_is_read_back_in_the_order_of_starts(tmp_path: Path) -> None:
    late, early = (
        Entry(client=0, tenant=0, intent=n, method="get", start_s=start_s, end_s=None, asked={"id": "名"}, told={})
        for n, start_s in enumerate((2.5, 1.25))
    )
    with HistoryWriter(tmp_path / "history.jsonl") as writer:
        writer.add(late)
        writer.add(early)
    assert read_history(tmp_path / "history.jsonl") == [early, late]
