import re

from memplane.demo.conversation import NOW, read_questions, read_turns


def test_the_conversation_is_long_bilingual_and_of_two_departments():
    turns = read_turns()
    chinese = [turn for turn in turns if re.search(r"[\u4e00-\u9fff]", turn.content)]
    assert len(turns) >= 60
    assert 15 <= len(chinese) <= len(turns) - 15
    assert {turn.namespace.split(".")[1] for turn in turns} == {"sales", "engineering"}


def test_it_holds_corrections_repeats_and_chatter():
    turns = read_turns()
    keys = [turn.fact_key for turn in turns if turn.fact_key]
    contents = [turn.content for turn in turns]
    assert len(keys) - len(set(keys)) >= 4
    assert len(contents) > len(set(contents))
    assert sum(not turn.session_id for turn in turns) >= 10


def test_turns_lie_before_the_questions_and_in_order_within_a_session():
    turns = read_turns()
    assert all(turn.event_time.ToDatetime(tzinfo=NOW.tzinfo) < NOW for turn in turns)
    for session in {turn.session_id for turn in turns} - {""}:
        assert [turn.sequence for turn in turns if turn.session_id == session] == list(
            range(sum(turn.session_id == session for turn in turns))
        )


def test_every_expected_answer_was_said_in_the_namespace_that_is_asked():
    turns = read_turns()
    for question in read_questions():
        for text in question.expect:
            assert any(text in turn.content and turn.namespace == question.namespace for turn in turns), text
