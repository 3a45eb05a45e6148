"""Finds the processes of a job in /proc and ends them by their ids."""

import contextlib
import os
import select
import signal
from pathlib import Path
from typing import NamedTuple

RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"
WORKER = b"spark.daemon\0pyspark.worker"
"""Of Spark's daemon, and of that of the connector."""


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
    """The Python workers of the executor, without the daemon that forks them. They outlive it."""
    return [process.pid for process, forked in _worker_processes(session) if forked]


def daemons(session):
    """The daemons that fork the workers."""
    return [process.pid for process, forked in _worker_processes(session) if not forked]


def _worker_processes(session):
    """Each with whether a daemon has forked it. Only the daemon is a child of the JVM."""
    found = of_session(session)
    others = {process.pid for process in found if WORKER not in process.command}
    return [(process, process.parent not in others) for process in found if WORKER in process.command]


def connections(pid):
    """Its TCP connections over IPv4, each as its local and its remote port."""
    with contextlib.suppress(OSError):
        rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        ports = {f"socket:[{row[9]}]": (_port(row[1]), _port(row[2])) for row in rows}
        return {ports[name] for name in _descriptors(pid) if name in ports}
    return set()


def _port(address):
    return int(address.rpartition(":")[2], 16)


def _descriptors(pid):
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            yield str(path.readlink())


def kill(*pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_and_await(pid, seconds):
    """Kill a process. Returns whether it was alive before and is dead now."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if select.select([descriptor], [], [], 0)[0]:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return bool(select.select([descriptor], [], [], seconds)[0])
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def kill_session(session):
    """Kill all processes at once, as when a machine fails."""
    for deadly in (signal.SIGSTOP, signal.SIGKILL):
        signal_session(session, deadly)


def signal_session(session, number):
    for process in of_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
