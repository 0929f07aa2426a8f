"""The steps of the demo: each does one thing to the running planes and returns what came of it. Prints nothing."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memplane.client import AdminClient, MemPlaneClient
from memplane.demo.conversation import NOW, Question
from memplane.evaluation.dataset import Group, read_groups
from memplane.evaluation.runner import Report, ask, load, report
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb

BATCH_SIZE = 10
ACK_TIMEOUT_S = 20.0
SETTING = "top_k"
SETTING_FILE = "retrieve.yaml"
NEW_TOP_K = 2
DIALOGUE_TURNS = 200
DIALOGUE_QUESTIONS = 20


@dataclass(frozen=True)
class Remembered:
    """What became of the conversation: turns by outcome, and stored memories by layer."""

    turns: int
    actions: Counter[str]
    layers: Counter[str]
    superseded: int
    token: str


@dataclass(frozen=True)
class Answered:
    """A question, what came back, and the rank of the hit that completed the answer; None: it was not found."""

    question: Question
    response: pb.SearchMemoriesResponse
    rank: int | None


@dataclass(frozen=True)
class Reloaded:
    """A reload: versions and hits of one and the same search before and after, and who acknowledged it."""

    old_line: str
    new_line: str
    version_before: str
    version_after: str
    answered_version: str
    hits_before: int
    hits_after: int
    acked: int

    @property
    def held(self) -> bool:
        """True when the new version governs and shows."""
        return (
            self.version_before != self.version_after == self.answered_version
            and self.acked == 1
            and self.hits_after == NEW_TOP_K < self.hits_before
        )


async def remember(
    client: MemPlaneClient, turns: Sequence[pb.WriteMemoryRequest], progress: Callable[[int], None]
) -> Remembered:
    """Writes the conversation and counts what became of it.

    Raises:
        RuntimeError: The data plane could not decide a turn.
    """
    actions: Counter[str] = Counter()
    token = ""
    async for response in client.batch_write(turns, BATCH_SIZE):
        for result in response.results:
            if result.HasField("error"):
                raise RuntimeError(f"a turn could not be decided: {result.error.message}")
            actions[_name(memory_pb2.DecisionAction, result.response.decision.action)] += 1
        token = response.consistency_token or token
        progress(len(response.results))
    layers, superseded = await _census(client, sorted({turn.namespace for turn in turns}))
    return Remembered(len(turns), actions, layers, superseded, token)


async def answer(client: MemPlaneClient, questions: Sequence[Question], token: str) -> list[Answered]:
    """Asks every question with the policy's own settings."""
    return [await _answer_one(client, question, token) for question in questions]


async def edit_and_reload(client: MemPlaneClient, admin: AdminClient, policy: Path, question: Question) -> Reloaded:
    """Changes one line of YAML, reloads, and asks the same question before and after.

    Raises:
        RuntimeError: The policy has no such line, or the control plane refused the change.
    """
    before = await client.search(question.namespace, question.text, reference_time=NOW)
    old_line, new_line = edit_line(policy / SETTING_FILE, SETTING, str(NEW_TOP_K))
    response = await admin.reload(wait_for_acks_s=ACK_TIMEOUT_S, comment=f"demo: {new_line.strip()}")
    if not response.accepted:
        raise RuntimeError(f"the control plane refused {new_line.strip()!r}: {response.diagnostics}")
    after = await client.search(question.namespace, question.text, reference_time=NOW)
    return Reloaded(
        old_line.strip(),
        new_line.strip(),
        before.policy_version,
        response.revision.version_info,
        after.policy_version,
        len(before.hits),
        len(after.hits),
        response.propagation.acked,
    )


def edit_line(file: Path, key: str, value: str) -> tuple[str, str]:
    """Gives the first `key: …` of a YAML file another value, as a person would; the old and the new line.

    Raises:
        RuntimeError: There is no such line.
    """
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.strip().startswith(f"{key}:"):
            lines[index] = f"{line[: line.index(key)]}{key}: {value}\n"
            file.write_text("".join(lines), encoding="utf-8")
            return line, lines[index]
    raise RuntimeError(f"{file} has no line '{key}: …'")


async def read_dialogue(client: MemPlaneClient, folder: Path) -> Report:
    """Loads the beginning of the first LoCoMo dialogue and asks the questions that it can answer."""
    group = shorten_dialogue(read_groups(folder / "memories.jsonl", folder / "questions.jsonl")[0])
    loaded = await load(client, [group], "demo.locomo", lambda _what, _count: None)
    return report(loaded, await ask(client, loaded, lambda _what, _count: None))


def shorten_dialogue(group: Group) -> Group:
    """The first turns of a dialogue, and the first questions whose every piece of evidence lies in them."""
    memories = group.memories[:DIALOGUE_TURNS]
    known = {memory.id for memory in memories}
    answerable = [each for each in group.questions if all(known.issuperset(piece) for piece in each.evidence)]
    return replace(group, memories=memories, questions=answerable[:DIALOGUE_QUESTIONS])


async def _census(client: MemPlaneClient, namespaces: Sequence[str]) -> tuple[Counter[str], int]:
    """Stored memories by layer, and how many another one has replaced."""
    layers: Counter[str] = Counter()
    superseded = 0
    for namespace in namespaces:
        async for memory in client.list(namespace, states=["ACTIVE", "COLD", "SUPERSEDED"], page_size=1000):
            if memory.state == memory_pb2.STATE_SUPERSEDED:
                superseded += 1
            else:
                layers[_name(memory_pb2.Layer, memory.layer)] += 1
    return layers, superseded


async def _answer_one(client: MemPlaneClient, question: Question, token: str) -> Answered:
    response = await client.search(
        question.namespace, question.text, reference_time=NOW, at_least_as_fresh=token, explain=True
    )
    places = [_place(response, text) for text in question.expect]
    found = [place for place in places if place is not None]
    return Answered(question, response, max(found) if len(found) == len(places) else None)


def _place(response: pb.SearchMemoriesResponse, text: str) -> int | None:
    return next((hit.rank for hit in response.hits if text in hit.memory.content), None)


def _name(kind: object, number: int) -> str:
    """Name of an enum value without the enum's own name: `DECISION_ACTION_MERGED` → `MERGED`."""
    name: str = kind.Name(number)  # type: ignore[attr-defined]  # an EnumTypeWrapper, which has no public type
    prefix = kind.Name(0).removesuffix("UNSPECIFIED")  # type: ignore[attr-defined]
    return name.removeprefix(prefix)
