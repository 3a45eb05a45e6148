"""A folder of a real file system. Its writer can die before any step, and its machine can lose power.

    with disk.dying_at(3, torn=0.5):        # the writer dies before the fourth step that changes the folder
        store.append(…)                     # an interrupted write leaves half of its bytes
    disk.lose_power(choose)                 # bytes that were not synced may be lost

Power failures as POSIX allows them: an entry of the folder that was made or removed since the folder was last
synced may be either way, and of a file that grew any part beyond what was synced may be missing. ``choose(n)``
counts 0 to n.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


class Died(BaseException):
    """The process dies. Not an ``Exception``, because code cannot catch a kill -9."""


@dataclass(eq=False)
class _File:
    synced: int = 0
    """The bytes that survive a power failure."""
    content: bytes = b""
    """Whether the file has no name any more."""


class Disk:
    """Wraps the functions of ``os`` that change a folder; ``install`` it with a monkeypatch."""

    def __init__(self, root):
        self.root = Path(root)
        self._dies_at = None
        self._torn = 0.0
        self._step = 0
        self._descriptors = {}  # descriptor -> name, None for the folder
        self._files = {}
        self._durable = {}  # name -> file, as of the last sync of the folder
        self._real = {name: getattr(os, name) for name in ("open", "close", "writev", "fsync", "fdatasync", "unlink")}
        self._real |= {"replace": os.replace, "link": os.link}

    def install(self, monkeypatch):
        for name in self._real:
            monkeypatch.setattr(os, name, getattr(self, "_" + name))
        return self

    @contextlib.contextmanager
    def dying_at(self, step, *, torn=0.0):
        """Raise ``Died`` before step number ``step`` from now on (None: never), and block all later changes."""
        self._dies_at, self._step, self._torn = step, 0, torn
        try:
            yield
        finally:
            self._dies_at = None

    def _before_a_step(self):
        self._step += 1
        if self._dies_at is not None and self._step > self._dies_at:
            raise Died

    def _name(self, path):
        path = Path(path)
        return path.name if path.parent == self.root else None

    # --- the functions of os -------------------------------------------------------------------

    def _open(self, path, flags, *more, **options):
        name = self._name(path)
        if name is not None and flags & os.O_CREAT and name not in self._files:
            self._before_a_step()
            self._files[name] = _File()
        descriptor = self._real["open"](path, flags, *more, **options)
        if name is not None or Path(path) == self.root:
            self._descriptors[descriptor] = name
        return descriptor

    def _close(self, descriptor):
        self._descriptors.pop(descriptor, None)
        self._real["close"](descriptor)

    def _writev(self, descriptor, parts):
        if descriptor not in self._descriptors:
            return self._real["writev"](descriptor, parts)
        try:
            self._before_a_step()
        except Died:
            data = b"".join(parts)
            if self._step == self._dies_at + 1:
                os.write(descriptor, data[: int(len(data) * self._torn)])
            raise
        return self._real["writev"](descriptor, parts)

    def _fsync(self, descriptor):
        if descriptor in self._descriptors:
            self._before_a_step()
            self._note_sync(descriptor)
        self._real["fsync"](descriptor)

    def _fdatasync(self, descriptor):
        if descriptor in self._descriptors:
            self._before_a_step()
            self._note_sync(descriptor)
        self._real["fdatasync"](descriptor)

    def _note_sync(self, descriptor):
        name = self._descriptors[descriptor]
        if name is None:
            self._durable = dict(self._files)
        else:
            self._files[name].synced = os.fstat(descriptor).st_size

    def _replace(self, source, target):
        if (name := self._name(target)) is not None:
            self._before_a_step()
            self._unname(name)
            self._files[name] = self._files.pop(Path(source).name)
        self._real["replace"](source, target)

    def _link(self, source, target):
        if (name := self._name(target)) is not None and name not in self._files:
            self._before_a_step()
            self._files[name] = self._files[Path(source).name]
        self._real["link"](source, target)

    def _unlink(self, path, **options):
        name = self._name(path)
        if name is not None and Path(path).exists():
            self._before_a_step()
            self._unname(name)
        self._real["unlink"](path, **options)

    def _unname(self, name):
        if (file := self._files.pop(name, None)) is not None:
            file.content = (self.root / name).read_bytes()

    # --- power ---------------------------------------------------------------------------------

    def lose_power(self, choose):
        """Lose the bytes that were not synced. No file of the folder may be open."""
        contents = {file: (self.root / name).read_bytes() for name, file in self._files.items()}
        entries = dict(self._durable)
        for name in sorted(self._durable.keys() | self._files.keys()):
            now = self._files.get(name)
            if now is not self._durable.get(name) and choose(1):
                entries.pop(name, None)
                entries |= {} if now is None else {name: now}
        for path in list(self.root.iterdir()):
            self._real["unlink"](path)
        self._files = {}
        for name, file in entries.items():
            data = contents.get(file, file.content)
            kept = data[: file.synced + choose(len(data) - file.synced)] if len(data) > file.synced else data
            (self.root / name).write_bytes(kept)
            self._files[name] = _File(synced=len(kept))
        self._durable = dict(self._files)
