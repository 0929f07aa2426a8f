"""docs/admin-guide.md, followed word by word. About 40 s, most of it waiting for starts of the command line."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.deadline import eventually, eventually_async
from tests.e2e.guide import Shell, Step, environment, missing, steps_of
from tests.servers.process import free_port

GUIDE = Path(__file__).parents[2] / "docs" / "admin-guide.md"
KEY = re.compile(r"export MEMPLANE_API_KEY=(\S+)")
SERVES = {"memplane up": KEY, "memplane control": re.compile("controlplane: serving on")}


def test_a_guides_steps_are_its_shell_blocks_with_what_they_show() -> None:
    text = "a\n```sh\nb\n```\n\n```text\nc … d\nexit code 2\n```\n```yaml\ne: 1\n```\n```sh terminal\nf\n```\n"
    assert steps_of(text) == [Step("b\n", ("c … d",), 2), Step("f\n", terminal=True)]


def test_what_a_guide_shows_must_be_seen_in_its_order() -> None:
    assert not missing(("one … three", "four"), "one  two three\nmore\nfour\n")
    assert missing(("four", "one"), "one\nfour\n") == "one"
    assert missing(("none",), "") == "none"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_administrators_guide_holds_word_by_word(tmp_path: Path) -> None:
    control, data = free_port(), free_port()
    where = {"MEMPLANE_CONTROL": f"127.0.0.1:{control}", "MEMPLANE_TARGET": f"127.0.0.1:{data}"}
    shell = Shell(tmp_path, environment(COLUMNS="240", **where))
    text = GUIDE.read_text().replace("127.0.0.1:7700", where["MEMPLANE_CONTROL"])
    text = text.replace("127.0.0.1:7701", where["MEMPLANE_TARGET"])
    text = text.replace("memplane up\n", f"memplane up --control-port {control} --data-port {data}\n")
    try:
        for step in steps_of(text):
            seen = len(shell.told())
            await shell.follow(with_key(step, shell))
            for command, serves in SERVES.items():
                if step.terminal and command in step.commands:
                    await eventually(lambda serves=serves, seen=seen: serves.search(shell.told()[seen:]), bool, 90)
            if "memplane data" in step.commands:
                await eventually_async(partial(shell.succeeds, "memplane fleet | grep -q SYNCED"), bool, 90)
    finally:
        await shell.stop()


def with_key(step: Step, shell: Shell) -> Step:
    """The step with the administrator's key where the guide says `mpk_…`."""
    if "mpk_…" not in step.commands:
        return step
    found = KEY.search(shell.told())
    assert found is not None
    return replace(step, commands=step.commands.replace("mpk_…", found[1]))
