"""`python -m bench.access`: what an access check takes, beside casbin on the same rules. Some seconds.

10,000 grants: 100 roles of 100 grants each, 200 principals with three roles and a group each; one grant in ten has
conditions, one in twenty denies. Times are processor time of this process, so that others on the machine count less.

`python -m bench.access --questions 200000` asks both that many questions on random policies instead, and ends at the
first difference: about a minute and a half of processor time.
"""

import argparse
import random  # noqa: TID251 - rules and questions are drawn from a fixed seed
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

from controlplane.reference import CasbinReference, Question, index_allows
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.rbac import Grant, Group, Principal, Rbac, Role
from tests.access_rules import random_question, random_rbac

ROLES, GRANTS_EACH, PRINCIPALS = 100, 100, 200
ROUNDS, CHECKS, ENFORCES = 5, 20_000, 3
QUESTIONS_A_POLICY = 100
SEED = 2026

T = TypeVar("T")


def main() -> None:
    """Measures and prints, or compares."""
    parser = argparse.ArgumentParser(prog="python -m bench.access")
    parser.add_argument("--questions", type=int, default=0, help="Compare that many answers instead of measuring.")
    questions = parser.parse_args().questions
    if questions:
        compare(questions)
    else:
        measure()


def compare(questions: int) -> None:
    """Asks both; ends the process with 1 at the first difference."""
    dice, allowed = random.Random(SEED), 0  # noqa: S311 - a fixed draw, no secret
    for number in range(questions):
        if number % QUESTIONS_A_POLICY == 0:
            rbac = random_rbac(dice)
            index, reference = AccessIndex(rbac, None), CasbinReference(rbac)
        question = random_question(dice)
        answer = index_allows(index, question)
        if answer != reference.allows(question):
            sys.exit(f"they differ: {question} on {rbac.model_dump_json(exclude_defaults=True)}")
        allowed += answer
    print(f"{questions} questions answered alike, {allowed} of them by yes")


def measure() -> None:
    """Prints what a check takes."""
    dice = random.Random(SEED)  # noqa: S311 - as above
    rbac = ten_thousand_grants(dice)
    asked = [_question(dice) for _ in range(1000)]
    index, building_s = _timed(lambda: AccessIndex(rbac, None))
    reference, loading_s = _timed(lambda: CasbinReference(rbac))
    first_s = _seconds_each(lambda: _ask(index, asked, len(asked)), len(asked))
    ours_s = median(_seconds_each(lambda: _ask(index, asked, CHECKS), CHECKS) for _ in range(ROUNDS))
    few = asked[:ENFORCES]
    casbin_s = _seconds_each(lambda: [reference.allows(question) for question in few], ENFORCES)
    print(f"{reference.row_count} rows; index built in {building_s:.2f} s, casbin in {loading_s:.2f} s")
    print(f"by the index: {ours_s * 1e6:.2f} µs; the first time of a namespace {first_s * 1e6:.2f} µs")
    print(f"by casbin: {casbin_s * 1e6:,.0f} µs, {casbin_s / ours_s:,.0f} times as long")


def ten_thousand_grants(dice: random.Random) -> Rbac:
    """Grants on 10,000 namespaces of 2 to 5 labels."""
    names = tuple(f"role-{number}" for number in range(ROLES))
    roles = {name: Role(grants=tuple(_grant(dice) for _ in range(GRANTS_EACH))) for name in names}
    groups = {f"group-{number}": Group(roles=(dice.choice(names),)) for number in range(20)}
    principals = {f"agent-{number}": Principal(roles=tuple(dice.sample(names, 3))) for number in range(PRINCIPALS)}
    return Rbac(roles=roles, groups=groups, principals=principals)


def _grant(dice: random.Random) -> Grant:
    return Grant(
        namespace=_namespace(dice, dice.randint(2, 5)),
        permissions=("memory.read", "memory.write"),
        effect="deny" if dice.random() < 0.05 else "allow",
        kinds=("FACT", "PREFERENCE") if dice.random() < 0.1 else (),
    )


def _question(dice: random.Random) -> Question:
    """About a namespace of five labels, which is more than most have."""
    agent = Identity(f"agent-{dice.randrange(PRINCIPALS)}")
    return Question(agent, "memory.read", _namespace(dice, 5), 3, dice.randint(1, 7), 0)


def _namespace(dice: random.Random, labels: int) -> str:
    return ".".join(["dept", *(f"unit-{dice.randrange(10)}" for _ in range(labels - 1))])


def _ask(index: AccessIndex, asked: Sequence[Question], count: int) -> None:
    for number in range(count):
        question = asked[number % len(asked)]
        index.cells(question.identity, question.permission, question.namespace)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started_s = time.process_time()
    made = work()
    return made, time.process_time() - started_s


def _seconds_each(work: Callable[[], object], count: int) -> float:
    return _timed(work)[1] / count


if __name__ == "__main__":
    main()
