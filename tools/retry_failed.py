"""Run pytest with the given arguments, and run each failed test twice more, by itself.

A test that passes both times depends on the pace of the machine. Such tests are printed, and the run passes.
CI uses this command in place of pytest. ``make test`` stays strict.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST = 5
"""If more tests fail, none runs again: a change broke them."""


def run(arguments: list[str]) -> int:
    """Run the tests, then the failed ones again. Returns the exit code: 0 if all pass, or pass when they run alone."""
    with tempfile.TemporaryDirectory() as cache:
        code = _pytest(*arguments, "-o", f"cache_dir={cache}")
        failed = _failed_tests(Path(cache))
    again = 0 < len(failed) <= MOST and all("::" in test for test in failed)
    if code != pytest.ExitCode.TESTS_FAILED or not again:
        return code
    broken = [test for test in failed if not (_passes_alone(test) and _passes_alone(test))]
    for title, tests in (
        ("failed again", broken),
        ("depends on pace", [test for test in failed if test not in broken]),
    ):
        if tests:
            print(f"\n{title}:", *tests, sep="\n  ", flush=True)
    return int(pytest.ExitCode.TESTS_FAILED if broken else pytest.ExitCode.OK)


def _failed_tests(cache: Path) -> list[str]:
    """Return the failed tests that pytest remembers, by id. A file that it could not import is its path."""
    remembered = cache / "v/cache/lastfailed"
    return list(json.loads(remembered.read_text())) if remembered.exists() else []


def _passes_alone(test: str) -> bool:
    print(f"\nrunning again: {test}", flush=True)
    return _pytest(test) == pytest.ExitCode.OK


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
