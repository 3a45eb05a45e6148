"""Build the source distribution and the wheel twice, from two copies of the project, and compare them byte for byte.

    python tools/distributions.py dist

The copies differ in folder, time stamps and permissions, so nothing of these may reach the distributions. Their times
are ``SOURCE_DATE_EPOCH``: by default the time of the last commit, or of CHANGELOG.md without git.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "dist", "build", "spark-warehouse")


def epoch() -> str:
    """``SOURCE_DATE_EPOCH`` of a build."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return found or str(int((ROOT / "CHANGELOG.md").stat().st_mtime))


def build(folder: Path, *, mtime: int, umask: int) -> dict[str, bytes]:
    """The name and content of each distribution, built from a copy of the project in ``folder``."""
    copy, out = folder / "project", folder / "out"
    before = os.umask(umask)
    try:
        shutil.copytree(ROOT, copy, ignore=_LEFT_OUT, copy_function=shutil.copyfile)
        for path in copy.rglob("*"):
            os.utime(path, (mtime, mtime))
        command = [sys.executable, "-m", "build", "--outdir", str(out), str(copy)]
        variables = os.environ | {"SOURCE_DATE_EPOCH": epoch()}
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    finally:
        os.umask(before)
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def differences(first: dict[str, bytes], second: dict[str, bytes]) -> list[str]:
    """The names of distributions that are not the same in both builds."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def sums(distributions: dict[str, bytes]) -> str:
    """As ``sha256sum`` writes them."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(distributions.items()))


def main(target: Path) -> int:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory(prefix="another-name-") as other:
        built = build(Path(one), mtime=1_000_000_000, umask=0o022)
        again = build(Path(other), mtime=1_500_000_000, umask=0o077)
    if different := differences(built, again):
        print(f"Two builds differ: {', '.join(different)}", file=sys.stderr)
        return 1
    target.mkdir(exist_ok=True)
    for name, data in built.items():
        (target / name).write_bytes(data)
    (target / "SHA256SUMS").write_text(sums(built))
    print(sums(built), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
