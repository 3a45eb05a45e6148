"""The pictures of the pages are drawn from tools/pictures.py. Texts stay inside their boxes, and arrows off texts."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tools import pictures

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
PHONE = 368
"""The width of the text of a page on a screen of 400 px."""
SIZES = {"title": 13, "note": 12, "red": 12}
NARROW_LETTERS, WIDE_LETTERS = frozenset(" fijlrt.,:;'()-/I"), frozenset("mwMW…")
BOLD = 1.13
"""How much wider the bold letters of DejaVu Sans are. It is the widest of the fonts that the pictures name."""


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other):
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def contains(self, other):
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


def test_check_names_a_stale_picture(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    assert pictures.main(["--check"], tmp_path) == 1
    assert pictures.main([], tmp_path) == 0
    assert pictures.main(["--check"], tmp_path) == 0
    (tmp_path / "docs/flow.svg").write_text("<svg/>")
    assert pictures.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "out of date: flow.svg. Run python tools/pictures.py."


@pytest.fixture(scope="module")
def drawings():
    return {name: ET.fromstring(draw()) for name, draw in pictures.PICTURES.items()}


def test_every_picture_fits_a_phone_and_keeps_its_size(drawings):
    for name, picture in drawings.items():
        width, height = picture.get("width"), picture.get("height")
        assert picture.get("viewBox") == f"0 0 {width} {height}", name
        assert int(width) <= PHONE, name


def test_every_text_and_arrow_is_inside_a_box_or_outside_it(drawings):
    for name, picture in drawings.items():
        page, *boxes = _boxes(picture)
        for what, area in (*_texts(picture), *_lines(picture)):
            assert page.contains(area), (name, what)
            for box in boxes:
                assert box.contains(area) or not box.overlaps(area), (name, what, box)


def test_no_text_is_below_an_arrow_or_another_text(drawings):
    for name, picture in drawings.items():
        texts = _texts(picture)
        for (one, area), (other, other_area) in (*combinations(texts, 2), *_pairs(texts, _lines(picture))):
            assert not area.overlaps(other_area), (name, one, other)


def _pairs(some, others):
    return [(one, other) for one in some for other in others]


def _boxes(picture):
    for rect in picture.iter(f"{SVG}rect"):
        left, top, width, height = (int(rect.get(side, "0")) for side in ("x", "y", "width", "height"))
        yield Area(left, top, left + width, top + height)


def _texts(picture):
    found = []
    for text in picture.iter(f"{SVG}text"):
        size, left, base = SIZES[text.get("class")], int(text.get("x")), int(text.get("y"))
        found.append((text.text, Area(left, base - 0.8 * size, left + _width(text.text, size), base + 0.25 * size)))
    return found


def _width(text, size):
    letters = sum(0.4 if char in NARROW_LETTERS else 1 if char in WIDE_LETTERS else 0.63 for char in text)
    return size * letters * (BOLD if size == SIZES["title"] else 1)


def _lines(picture):
    """Each straight piece of an arrow, with the width of its head."""
    found = []
    for line in picture.iter(f"{SVG}polyline"):
        points = [tuple(map(int, point.split(","))) for point in line.get("points").split()]
        for (x1, y1), (x2, y2) in pairwise(points):
            assert x1 == x2 or y1 == y2, "upright or level"
            wide, high = (5, 0) if x1 == x2 else (0, 5)
            found.append(
                (
                    line.get("points"),
                    Area(min(x1, x2) - wide, min(y1, y2) - high, max(x1, x2) + wide, max(y1, y2) + high),
                )
            )
    return found
