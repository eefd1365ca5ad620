"""Stands between the supervisor and one engine, so that no process of the engine is ever left behind. Standard library only.

    python guard.py GRACE_SECONDS -- COMMAND ...

The supervisor holds the other end of standard input. However it ends, that end closes, and this process ends the engine. Engines
start workers in sessions of their own, which signals to a process group do not reach: as a "child subreaper" (prctl(2)) this process
inherits every orphan, and ends only when it has no child left. Should this process itself be killed, the kernel kills the engine's
main process (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run a command until it ends or standard input does. Returns its exit status, 128 + N where a signal ended it."""
    grace, command = float(arguments[0]), arguments[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: asked.append(got))
    engine = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
    )
    status: int | None = None
    while status is None and not asked:
        readable, _, _ = select.select([0], [], [], 0.2)
        if readable and not os.read(0, 1024):
            asked.append(signal.SIGTERM)
        status = _reap(engine.pid, status)
    if status is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(engine.pid, signal.SIGTERM)
        until = time.monotonic() + grace
        while status is None and time.monotonic() < until:
            time.sleep(0.05)
            status = _reap(engine.pid, status)
    while _children():
        for pid in _descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        status = _reap(engine.pid, status)
    return 128 + signal.SIGKILL if status is None else status


def _reap(engine: int, status: int | None) -> int | None:
    """Take in every child that ended; the engine's exit status where it is among them."""
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == engine:
            status = 128 + os.WTERMSIG(code) if os.WIFSIGNALED(code) else os.WEXITSTATUS(code)


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return found


def _children() -> list[int]:
    own = os.getpid()
    return [pid for pid, parent in _parents().items() if parent == own]


def _descendants() -> list[int]:
    parents = _parents()
    found: list[int] = []
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found += level
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
