import asyncio
import logging

import pytest

from dataplane.errors import BackendUnavailable
from dataplane.examine import Examiner
from dataplane.ports import Examination, Problem

EVICTS = Examination("Redis 7.2", (Problem("EVICTS", "set maxmemory-policy noeviction"),))


class Scripted:
    def __init__(self, *answers: Examination | Exception) -> None:
        self.answers = list(answers)

    async def examine(self, deadline_s: float) -> Examination:
        assert deadline_s > asyncio.get_running_loop().time()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        return


async def test_an_outage_is_told_beside_what_was_known_before() -> None:
    examiner = Examiner({"cache": Scripted(EVICTS, BackendUnavailable("cache", "refused"), EVICTS)})
    problems = []
    for _ in range(3):
        await examiner.look()
        problems.append(examiner.findings["cache"].problem)
        assert examiner.findings["cache"].examination == EVICTS
    assert problems == ["", "refused", ""]


async def test_a_defect_in_one_examination_keeps_no_other_from_being_made() -> None:
    examiner = Examiner({"cache": Scripted(RuntimeError("defect")), "embedder": Scripted(Examination("e5"))})
    await examiner.look()
    assert "examination failed" in examiner.findings["cache"].problem
    assert examiner.findings["embedder"].examination.server == "e5"


async def test_a_lasting_problem_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    examiner = Examiner({"cache": Scripted(EVICTS, EVICTS)})
    await examiner.look()
    await examiner.look()
    assert [record.getMessage() for record in caplog.records] == ["cache: set maxmemory-policy noeviction"]
