"""Becomes a server that does not outlive the test run: `python -I -S launch.py PARENT_PID SIGNAL UID GID COMMAND...`.

A UID of -1 keeps the user. The order matters: a change of user clears the death signal. This is a program of its own
and not a `preexec_fn`, since forking a test run that has threads is not safe.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(parent_pid: int, death_signal: int, uid: int, gid: int, command: list[str]) -> None:
    """Replaces this process by the command; its pid stays the same."""
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent_pid:
        raise SystemExit("the test run ended before its server started")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
