"""The pictures of the pages are drawn from tools/pictures.py, and their texts stay inside them."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 7.2
"""Pixels of a character, a little more than a wide font of this size needs on average."""


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_check_names_a_stale_picture(pictures, tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    assert pictures.main(["--check"], tmp_path) == 1
    assert pictures.main([], tmp_path) == 0
    assert pictures.main(["--check"], tmp_path) == 0
    (tmp_path / "docs/flow.svg").write_text("<svg/>")
    assert pictures.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "out of date: flow.svg. Run python tools/pictures.py."


@pytest.mark.parametrize("name", ["flow", "acknowledge", "window"])
def test_every_text_is_inside_its_picture(pictures, name):
    picture = ET.fromstring(getattr(pictures, name)())
    _, _, width, height = map(int, picture.get("viewBox").split())
    for text in picture.iter(f"{SVG}text"):
        assert 0 < int(text.get("y")) < height
        assert int(text.get("x")) + WIDEST * len(text.text) < width, text.text
