"""Finds processes that this process or its Spark has started, in /proc."""

import contextlib
import os
from pathlib import Path


def runners():
    """The streaming source runners: children of the Spark JVM that this process started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return [pid for pid in parents if _is_runner(pid) and _is_ours(pid, parents)]


def _is_runner(pid):
    with contextlib.suppress(OSError):
        return b"python_streaming_source_runner" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _is_ours(pid, parents):
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()
