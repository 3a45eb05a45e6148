"""The pictures of the pages are drawn from tools/pictures.py, and their texts stay inside them."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 7.2
"""Pixels of a character, a little more than a wide font of this size needs on average."""
WIDEST_BOLD, WIDEST_SMALL = 7.8, 6.7
"""The same for titles, and for the lines below them."""


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


@pytest.fixture(scope="module")
def drawings(pictures):
    return {name: ET.fromstring(draw()) for name, draw in pictures.PICTURES.items()}


def test_every_text_is_inside_its_picture(drawings):
    for name, picture in drawings.items():
        _, _, width, height = map(int, picture.get("viewBox").split())
        for text in picture.iter(f"{SVG}text"):
            assert 0 < int(text.get("y")) < height, (name, text.text)
            assert int(text.get("x")) + WIDEST * len(text.text) < width, (name, text.text)


def test_every_text_of_a_box_is_inside_it(drawings):
    for name, picture in drawings.items():
        corner = None
        for item in picture:
            if item.tag == f"{SVG}rect":
                corner = {side: int(item.get(side, 0)) for side in ("x", "y", "width", "height")}
            elif item.tag == f"{SVG}text" and _is_of_box(item, corner):
                wide = WIDEST_BOLD if item.get("class") == "title" else WIDEST_SMALL
                right, bottom = corner["x"] + corner["width"], corner["y"] + corner["height"]
                assert int(item.get("x")) + wide * len(item.text) < right, (name, item.text)
                assert int(item.get("y")) < bottom, (name, item.text)


def _is_of_box(text, corner):
    """A box writes its texts at this distance from its corner."""
    return int(text.get("x")) == corner["x"] + 12 and int(text.get("y")) > corner["y"]
