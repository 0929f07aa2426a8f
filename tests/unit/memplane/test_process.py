import json
import os
import signal
import subprocess
import sys

import pytest

from memplane.process import FolderInUse, lock_folder, say_ready


def test_a_folder_is_held_by_one_process_which_is_named(tmp_path):
    for _ in range(2):
        with lock_folder(tmp_path, "data plane"):
            with pytest.raises(FolderInUse, match=rf"another data plane \(process {os.getpid()}\) works on"):
                lock_folder(tmp_path, "data plane")
            assert (tmp_path / "lock").read_text() == str(os.getpid())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("none", ""),
        ("text", "data plane serves on 127.0.0.1:1\n"),
        ("json", json.dumps({"address": "127.0.0.1:1", "pid": os.getpid()}, indent=2) + "\n"),
    ],
    ids=["none", "text", "json"],
)
def test_a_plane_says_where_it_serves_as_it_was_told_to(capsys, how, said):
    say_ready(how, "data", "127.0.0.1:1")
    assert capsys.readouterr().out == said


def test_libraries_log_warnings_alone_and_our_own_modules_what_matters():
    code = """
import logging
from memplane.process import log_to_stderr
log_to_stderr()
for name in ("httpx", "a.library", "memplane.dataplane"):
    logging.getLogger(name).info("told by %s", name)
logging.getLogger("elastic_transport.node_pool").warning("a call failed")
logging.getLogger("psycopg.pool").warning("a connection failed")
logging.getLogger("a.library").warning("warned")
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stderr
    assert [line.partition(": ")[2] for line in told.splitlines()] == ["told by memplane.dataplane", "warned"]


WAITING = """
import asyncio, sys
from memplane.process import end_with_parent, told_to_stop

async def main():
    told = told_to_stop()
    end_with_parent(int(sys.argv[1]))
    print("waits", flush=True)
    await told.wait()
    print("told", flush=True)
    if sys.argv[2] == "hang":
        await asyncio.Event().wait()

asyncio.run(main())
"""


def waiting(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WAITING, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_told_and_the_second_ends_the_process_at_once(number):
    with waiting("0", "hang") as process:
        process.send_signal(number)
        assert process.stdout.readline() == "told\n"
        process.send_signal(number)
        assert process.wait(10) == -number


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_a_process_stops_in_order_when_the_one_that_started_it_is_killed():
    code = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {WAITING!r}, str(os.getpid()), "end"])
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "waits\n"
        parent.kill()
        assert parent.stdout.readline() == "told\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_a_parent_that_is_gone_already_counts_as_killed():
    with waiting("1", "end") as process:
        assert process.stdout.readline() == "told\n"
