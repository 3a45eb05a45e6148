"""Whether bytes are anywhere in the memory of a process: on its heap, off it, or in what was freed."""

import contextlib
from pathlib import Path

_PIECE = 16 << 20


def has_bytes(pid, wanted):
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        return any(_found(memory, start, end, wanted) for start, end in _writable(pid))


def _writable(pid):
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        where, permissions = line.split()[:2]
        if permissions.startswith("rw"):
            start, _, end = where.partition("-")
            yield int(start, 16), int(end, 16)


def _found(memory, start, end, wanted):
    tail = b""
    with contextlib.suppress(OSError, ValueError):  # unmapped meanwhile, or of a device
        memory.seek(start)
        while start < end and (data := memory.read(min(_PIECE, end - start))):
            if wanted in tail + data:
                return True
            tail, start = data[-len(wanted) :], start + len(data)
    return False
