import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_without_a_wheel_is_refused(tmp_path, capsys):
    assert _tool("sbom").main(tmp_path) == 1
    assert "has 0 wheels" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_lists_what_pip_installs(tmp_path):
    built = _tool("distributions").build(tmp_path, mtime=1_000_000_000, umask=0o022)
    (wheel,) = (name for name in built if name.endswith(".whl"))
    (tmp_path / wheel).write_bytes(built[wheel])
    assert _tool("sbom").main(tmp_path) == 0
    found = json.loads((tmp_path / "pyspark-jms.cdx.json").read_text())
    assert found["metadata"]["component"]["name"] == "pyspark-jms"
    names = {component["name"] for component in found["components"]}
    required = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert set(re.findall(r'^  "([\w.-]+)', required[1], re.MULTILINE)) <= names
    assert not names & {"pip", "pytest", "ruff"}
    assert sys.executable not in json.dumps(found)
