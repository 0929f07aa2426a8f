import json
import os
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
