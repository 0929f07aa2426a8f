"""`memplane eval retrieval` on planes of its own. Some seconds; with the evaluation data, about a minute."""

import json
from pathlib import Path

import pytest

from memplane.cli.config import evaluation_data
from tests.e2e.commands import memplane, up

TEXTS = {
    "Ann & Bob": ["Ann keeps a red bicycle in the cellar.", "Bob plays the cello on Fridays.", "Ann was born in Oslo."],
    "张伟": ["张伟养了一只叫豆包的猫。", "张伟下周去杭州出差。", "张伟养了一只叫豆包的猫。"],
}
ASKED = {"Ann & Bob": ("red bicycle cellar", [["m0"]]), "张伟": ("豆包 猫", [["m2", "m0"]])}
QUICK = {"MEMPLANE_DATA_EMBEDDER": "hash"}


def files(folder: Path) -> tuple[str, ...]:
    """Writes a small data set; the options that name it."""
    memories = [
        {"group": group, "id": f"m{index}", "text": text, "time": f"2023-05-0{index + 1}T09:00:00", "session": "1"}
        for group, texts in TEXTS.items()
        for index, text in enumerate(texts)
    ]
    questions = [
        {"group": group, "id": f"q-{group}", "text": text, "context_turns": [], "category": "own", "evidence": evidence}
        for group, (text, evidence) in ASKED.items()
    ]
    for name, rows in (("memories", memories), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ("--memories", str(folder / "memories.jsonl"), "--questions", str(folder / "questions.jsonl"))


async def test_each_group_is_asked_in_its_own_namespace_and_dumped(tmp_path):
    dump = tmp_path / "dump.jsonl"
    finished = await memplane(
        "eval", "retrieval", *files(tmp_path), "--dump", str(dump), "--json", cwd=tmp_path, env=QUICK
    )
    assert finished.code == 0, finished.stderr
    report = finished.json
    assert sum(report["writes"].values()) == report["memories"] == 6
    assert report["overall"]["n"] == report["categories"]["own"]["n"] == 2
    assert report["overall"]["recall_at_5"] == 1.0
    assert report["degraded"] == 0
    answers = {row["id"]: row["ids"] for row in map(json.loads, dump.read_text().splitlines())}
    assert answers["q-Ann & Bob"][0] == "m0"
    assert sorted(answers["q-张伟"]) == ["m0", "m1", "m2"]


async def test_two_policies_are_compared(tmp_path):
    for name, weight in (("old", 0), ("new", 1)):
        (tmp_path / name).mkdir()
        retrieve = f"retrieve_policy: {{weights: {{text: {weight}}}}}\n"
        text = f"write_policy: {{threshold: 0, short_term_threshold: 0}}\n{retrieve}"
        (tmp_path / name / "policy.yaml").write_text(text)
    finished = await memplane(
        *("eval", "retrieval", *files(tmp_path), "--policy", "old", "--policy", "new", "--json"),
        *("--dump", "dump.jsonl", "--html", "report.html"),
        cwd=tmp_path,
        env=QUICK,
    )
    assert finished.code == 0, finished.stderr
    assert finished.json["comparisons"]["new"]["overall"]["recall_at_10"]["n"] == 2
    assert (tmp_path / "dump.1-old.jsonl").exists()
    assert (tmp_path / "dump.2-new.jsonl").exists()
    assert "By policy" in (tmp_path / "report.html").read_text()


async def test_a_running_plane_is_used_and_left_running(tmp_path):
    async with up(tmp_path) as (process, announced):
        finished = await memplane(
            *("eval", "retrieval", *files(tmp_path), "--target", announced["data"], "--json"),
            cwd=tmp_path,
            env={"MEMPLANE_API_KEY": announced["admin_key"]},
        )
        assert process.returncode is None
    assert finished.code == 0, finished.stderr
    assert sum(finished.json["writes"].values()) == 6


async def test_a_bad_file_is_one_line_that_names_it(tmp_path):
    options = files(tmp_path)
    (tmp_path / "questions.jsonl").write_text("{}\n")
    finished = await memplane("eval", "retrieval", *options, cwd=tmp_path)
    assert finished.code == 1
    assert finished.stderr.startswith("Error: ")
    assert "questions.jsonl:1: " in finished.stderr


async def test_a_policy_that_finds_everything_is_left_as_it_is(tmp_path):
    options, old = files(tmp_path), tmp_path / "old"
    old.mkdir()
    (old / "retrieve.yaml").write_text("retrieve_policy: {weights: {text: 0}}\n")
    page = tmp_path / "report.html"
    finished = await memplane(
        *("eval", "tune", *options, "--policy", str(old), "--key", "weights.text=0,0.5", "--trials", "3", "--json"),
        *("--html", str(page), "--output", str(tmp_path / "tuned.yaml")),
        cwd=tmp_path,
        env=QUICK,
    )
    assert finished.code == 0, finished.stderr
    assert [trial["setting"] for trial in finished.json["trials"]] == [{"weights.text": 0}, {"weights.text": 0.5}]
    assert finished.json["verdict"] == "no gain: keep yours"  # both questions are answered as it is
    assert not (tmp_path / "tuned.yaml").exists()
    assert "<svg" in page.read_text()


@pytest.mark.data
@pytest.mark.slow
async def test_chinese_memories_are_found_as_well_as_plain_fusion_finds_them(tmp_path):
    data = evaluation_data()
    if data is None:
        pytest.skip("MEMPLANE_EVAL_DATA names no folder")
    folder = data / "retrieval" / "memorybank_zh"
    finished = await memplane(
        *("eval", "retrieval", "--memories", str(folder / "memories.jsonl")),
        *("--questions", str(folder / "questions.jsonl"), "--json"),
        cwd=tmp_path,
    )
    assert finished.code == 0, finished.stderr
    assert finished.json["overall"]["recall_at_5"] >= 0.95
