import hashlib
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools import distributions

ROOT = Path(__file__).parents[2]


def test_equal_builds_pass_and_others_are_named():
    built = {"a.whl": b"1", "a.tar.gz": b"2"}
    assert distributions.differences(built, dict(built)) == []
    assert distributions.differences(built, built | {"a.whl": b"3"}) == ["a.whl"]
    assert distributions.differences(built, {"a.whl": b"1"}) == ["a.tar.gz"]


def test_the_sums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "b").write_bytes(b"x")
    (tmp_path / "SUMS").write_text(distributions.sums({"b": b"x"}))
    assert hashlib.sha256(b"x").hexdigest() in (tmp_path / "SUMS").read_text()
    subprocess.run(["sha256sum", "--check", "--strict", "SUMS"], cwd=tmp_path, check=True, capture_output=True)


def test_the_time_of_a_build_can_be_given(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert distributions.epoch() == "1"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert int(distributions.epoch()) > 1_600_000_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_builds_are_the_same(tmp_path, capsys):
    target = tmp_path / "dist"
    assert distributions.main(target) == 0
    assert len(list(target.glob("*.whl"))) == len(list(target.glob("*.tar.gz"))) == 1
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=target, check=True, capture_output=True)
    assert capsys.readouterr().out == (target / "SHA256SUMS").read_text()
    with tarfile.open(next(target.glob("*.tar.gz"))) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {
        "hatch_build.py",
        "SECURITY.md",
        "docs/monitoring/alerts.yml",
        "docs/monitoring/grafana-dashboard.json",
    } <= names
