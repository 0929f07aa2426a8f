"""`memplane demo`, as `make demo` runs it. About 20 seconds; with the evaluation data, about 40."""

import pytest

from tests.e2e.commands import memplane


@pytest.mark.slow
async def test_the_demo_holds(tmp_path):
    finished = await memplane("demo", "--json", cwd=tmp_path)
    assert finished.code == 0, finished.stdout + finished.stderr
    summary = {row["what"]: row["detail"] for row in finished.json["summary"]}
    assert finished.json["held"] is True
    assert summary["turns decided"] == "70 of 70"
    assert summary["answers found"] == "14/14"
    assert summary["policy version before"] != summary["policy version after"]
    assert list(tmp_path.iterdir()) == []
