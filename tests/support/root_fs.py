"""Root file systems for images, of what the machine has: for machines that reach no image registry."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

__all__ = ["RootFileSystem", "imported", "java_home", "output", "present"]

MODULES = ("java.se", "jdk.crypto.ec", "jdk.management", "jdk.naming.dns", "jdk.security.auth", "jdk.unsupported")
MODULES += ("jdk.zipfs",)

LOADED_BY_NAME = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
"""What the C library loads to look up hosts."""

EXPECTED = ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
"""Parts of the C library that Python's wheels may need."""


def present(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False).returncode == 0


def imported(name: str, lay_out: Callable[["RootFileSystem"], None], changes: Sequence[str]) -> None:
    """Make image ``name`` of what ``lay_out`` puts into an empty root; ``changes`` are lines of a Dockerfile."""
    with tempfile.TemporaryDirectory() as folder:
        root = RootFileSystem(Path(folder) / "root")
        lay_out(root)
        _import(root, name, changes)


class RootFileSystem:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._owners: dict[str, int] = {}
        for folder in ("bin", "etc", "tmp", "proc", "dev", "root", "usr"):
            (path / folder).mkdir(parents=True)
        (path / "usr/bin").symlink_to("../bin")
        (path / "bin/sh").symlink_to("bash")
        (path / "etc/nsswitch.conf").write_text("hosts: files dns\n")
        self.users({"root": 0})

    def __truediv__(self, path: str) -> Path:
        return self.path / path.lstrip("/")

    def users(self, numbers: dict[str, int]) -> None:
        lines = [f"{name}:x:{number}:{number}::/:/bin/sh\n" for name, number in numbers.items()]
        (self / "etc/passwd").write_text("".join(lines))
        (self / "etc/group").write_text("".join(f"{name}:x:{number}:\n" for name, number in numbers.items()))

    def folder(self, path: str, owner: int = 0) -> Path:
        """A folder that with all below it belongs to ``owner``."""
        self._owners[path] = owner
        (self / path).mkdir(parents=True, exist_ok=True)
        return self / path

    def script(self, path: str, text: str) -> None:
        (self / path).parent.mkdir(parents=True, exist_ok=True)
        (self / path).write_text(text)
        (self / path).chmod(0o755)

    def programs(self, *names: str) -> None:
        """Programs of the machine's PATH, into /bin, with their libraries."""
        copies = []
        for name in names:
            found = shutil.which(name)
            if found is None:
                raise SystemExit(f"{name} is not on this machine; the image needs it.")
            copies.append(Path(shutil.copy(Path(found).resolve(), self / f"bin/{name}")))
        self.libraries(copies)

    def java(self, path: str, *modules: str) -> None:
        """A runtime of the modules that a broker needs, and ``modules``; the whole one where there is no jlink."""
        home, target = java_home(), self / path
        if (home / "bin/jlink").exists() and (home / "jmods").is_dir():
            wanted = ",".join([*MODULES, *modules])
            lean = ["--strip-debug", "--no-header-files", "--no-man-pages"]
            target.parent.mkdir(parents=True, exist_ok=True)
            output(str(home / "bin/jlink"), "--add-modules", wanted, *lean, "--output", str(target))
        else:
            shutil.copytree(home, target, ignore=shutil.ignore_patterns("jmods", "src.zip", "man", "demo"))
        self.libraries([target / "bin/java", *target.rglob("*.so")])

    def libraries(self, binaries: Iterable[Path]) -> None:
        """What ldd names, the loader included, and the C library as a whole."""
        found = {Path(path) for binary in binaries for path in re.findall(r"(/\S+) \(0x", output("ldd", str(binary)))}
        outside = {path for path in found if not path.is_relative_to(self.path)}
        beside = {path.parent for path in outside if path.name.startswith("libc.so")}
        whole = {folder / name for folder in beside for name in (*LOADED_BY_NAME, *EXPECTED)}
        for library in outside | {path for path in whole if path.exists()}:
            (self / str(library)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library.resolve(), self / str(library))

    def owned(self, entry: tarfile.TarInfo) -> tarfile.TarInfo:
        """Everything is root's, but for the folders that were given away."""
        path = "/" + entry.name.strip("/")
        entry.uid = entry.gid = next((n for top, n in self._owners.items() if Path(path).is_relative_to(top)), 0)
        entry.uname = entry.gname = ""
        if path == "/tmp":
            entry.mode = 0o777 | stat.S_ISVTX
        return entry


def java_home() -> Path:
    return Path(output("java", "-XshowSettings:properties", "-version").split("java.home = ")[1].splitlines()[0])


def output(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    return ended.stdout + ended.stderr


def _import(root: RootFileSystem, name: str, changes: Sequence[str]) -> None:
    options = [word for change in changes for word in ("--change", change)]
    command = ["docker", "import", *options, "-", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importing:
        assert importing.stdin is not None
        with contextlib.closing(importing.stdin) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
            tar.add(root.path, arcname="/", filter=root.owned)
    if importing.returncode:
        raise SystemExit(f"docker import ended with {importing.returncode}")
