"""Metadata of a release, and the workflows that test and publish it."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
WORKFLOW = WORKFLOWS.get("release.yml")


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_to_files_become_addresses(hook):
    text = "[a](docs/a.md#b) [c](https://x/y) [d](#e) ![f](docs/f.png) [g](CHANGELOG.md) [h](mailto:i@j)"
    assert hook.absolute_links(text, "https://h/o/n", "v1") == (
        "[a](https://h/o/n/blob/v1/docs/a.md#b) [c](https://x/y) [d](#e) ![f](https://h/o/n/blob/v1/docs/f.png)"
        " [g](https://h/o/n/blob/v1/CHANGELOG.md) [h](mailto:i@j)"
    )


@pytest.mark.parametrize("url", ["https://h/o/n/", ""])
def test_addresses_are_those_of_the_publisher_or_none(hook, monkeypatch, url):
    monkeypatch.setenv("PROJECT_URL", url)
    metadata = {"version": "1.2.3"}
    hook.ReleaseMetadata(str(ROOT), {}).update(metadata)
    assert ("https://h/o/n/blob/v1.2.3/docs/guarantees.md" in metadata["readme"]["text"]) == bool(url)
    if not url:
        assert metadata["urls"] == {}
        return
    assert metadata["urls"]["Repository"] == "https://h/o/n"
    paths = [address.partition("/blob/v1.2.3/")[2] for address in metadata["urls"].values()]
    assert all((ROOT / path).exists() for path in paths if path)
    assert sum(map(bool, paths)) == 4


@pytest.mark.skipif(WORKFLOW is None, reason="a source distribution has no workflows")
def test_the_workflows_have_pinned_actions_and_few_permissions():
    granted = {}
    for name, text in WORKFLOWS.items():
        used = [each for each in re.findall(r"uses: (\S+)", text) if not each.startswith("./")]
        assert len(used) >= 4
        assert [each for each in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", each)] == []
        assert "\npermissions: {}\n" in text
        assert "secrets." not in text
        granted[name] = re.findall(r"^ {6}([\w-]+: (?:read|write))\b", text, re.MULTILINE)
    assert set(granted.pop("ci.yml")) == {"contents: read"}
    assert granted == {"release.yml": ["contents: read"] * 3 + ["id-token: write"]}


@pytest.mark.skipif(WORKFLOW is None, reason="a source distribution has no workflows")
def test_a_release_waits_for_all_tests():
    assert "uses: ./.github/workflows/ci.yml" in WORKFLOW
    assert "needs: [ci, build, test]" in WORKFLOW
    assert re.findall(r"- run: (.*)", WORKFLOWS["ci.yml"]) == [
        "make check coverage",
        "sudo --preserve-env=PATH .ci/run",
    ]


@pytest.mark.skipif(WORKFLOW is None, reason="a source distribution has no workflows")
def test_the_workflow_tests_the_pythons_of_the_classifiers():
    project = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    tested = re.search(r"python: (\[.+\])", WORKFLOW)[1]
    assert re.findall(r"3\.\d+", tested) == named
