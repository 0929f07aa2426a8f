import pytest

from memplane.demo.story import edit_line, shorten_dialogue
from memplane.evaluation.dataset import Group, LabelledMemory, Question


def test_a_line_is_edited_in_place_and_the_rest_kept(tmp_path):
    file = tmp_path / "retrieve.yaml"
    file.write_text("# what is found\nretrieve_policy:\n  top_k: 6  # hits\n  min_confidence: 0\n")
    assert edit_line(file, "top_k", "2") == ("  top_k: 6  # hits\n", "  top_k: 2\n")
    assert file.read_text() == "# what is found\nretrieve_policy:\n  top_k: 2\n  min_confidence: 0\n"


def test_a_line_that_is_not_there_is_reported(tmp_path):
    file = tmp_path / "retrieve.yaml"
    file.write_text("retrieve_policy: {}\n")
    with pytest.raises(RuntimeError, match="has no line 'top_k: …'"):
        edit_line(file, "top_k", "2")


def test_a_shortened_dialogue_keeps_only_what_it_can_answer():
    memories = [LabelledMemory("g", str(index), "text", None, "", "") for index in range(300)]
    asked = [Question("g", name, "?", [], "", [[evidence]], [], None) for name, evidence in (("a", "5"), ("b", "250"))]
    short = shorten_dialogue(Group("g", memories, asked))
    assert (len(short.memories), [question.id for question in short.questions]) == (200, ["a"])
