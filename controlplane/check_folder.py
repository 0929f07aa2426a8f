"""Checks a policy folder with its golden cases, without a plane: `python -m controlplane.check_folder`.

One JSON line in: `{"folder": …}`. One JSON line out: `version`, `valid`, `cases` (each with `sort`, `name`, `file`,
`line` and `result`: held, failed or untried) and `diagnostics`. That somebody may administer is not asked: a bootstrap
administrator may.
"""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from controlplane.case_child import CaseChild
from controlplane.compile import compile_documents
from controlplane.compiled import Compiled, PlacedCase
from controlplane.files import FolderUnreadable, read_folder
from controlplane.trial import question, results, tried
from memplane.errors import Unavailable


async def check(folder: Path) -> dict[str, Any]:
    """The answer on a folder. Raises FolderUnreadable or Unavailable."""
    compiled = compile_documents(read_folder(folder), bootstrap_admin=True)
    asked = question(compiled)
    if not asked:
        return _answer(compiled, ["untried"] * len(compiled.cases))
    child = CaseChild()
    try:
        came = await child.ask(asked)
    finally:
        await child.close()
    return _answer(tried(compiled, came), results(compiled, came))


def _answer(compiled: Compiled, told: list[str]) -> dict[str, Any]:
    return {
        "version": compiled.version,
        "valid": compiled.policy is not None,
        "cases": [_case(case, result) for case, result in zip(compiled.cases, told, strict=True)],
        "diagnostics": [asdict(each) for each in compiled.diagnostics],
    }


def _case(placed: PlacedCase, result: str) -> dict[str, Any]:
    place = placed.place
    return {
        "sort": placed.sort,
        "name": placed.case.name,
        "file": place.file,
        "line": place.line,
        "result": result,
    }


def main() -> int:
    """Answers stdin on stdout; 1 where the folder cannot be read or its cases cannot be tried."""
    try:
        answer = asyncio.run(check(Path(json.loads(sys.stdin.readline())["folder"])))
    except (FolderUnreadable, Unavailable) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
