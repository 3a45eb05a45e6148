"""Finds the processes of a job in /proc and ends them by their ids."""

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"
WORKER = b"pyspark.daemon\0pyspark.worker"


class Process(NamedTuple):
    pid: int
    parent: int
    command: bytes


def of_session(session):
    """The living processes of a session (``start_new_session``); Spark's workers have groups of their own."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            state, parent, _, owner = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(owner) == session and state != "Z":
                found.append(Process(int(folder.name), int(parent), (folder / "cmdline").read_bytes()))
    return found


def pids(session):
    return {process.pid for process in of_session(session)}


def runners(session):
    """The streaming source runners."""
    return [process.pid for process in of_session(session) if RUNNER in process.command]


def workers(session):
    """The Python workers of the executor, without the daemon that forks them."""
    daemons = [process for process in of_session(session) if WORKER in process.command]
    pids = {process.pid for process in daemons}
    return [process.pid for process in daemons if process.parent in pids]


def kill(*pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_session(session):
    """Kill all processes at once, as when a machine fails."""
    for deadly in (signal.SIGSTOP, signal.SIGKILL):
        signal_session(session, deadly)


def signal_session(session, number):
    for process in of_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
