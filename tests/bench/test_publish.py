"""Figures into a page, between its marks."""

from pathlib import Path

import pytest

from bench.publish import between_marks

ROOT = Path(__file__).parents[2]
PAGE = "before\n<!-- figures: begin (from a file) -->\n\nold\nolder\n\n<!-- figures: end -->\nafter\n"


def test_what_stood_there_is_replaced_and_the_rest_stays():
    page = between_marks(PAGE, "figures", r"new \1 line")
    assert page == "before\n<!-- figures: begin (from a file) -->\n\nnew \\1 line\n\n<!-- figures: end -->\nafter\n"
    assert between_marks(page, "figures", "again") == PAGE.replace("old\nolder", "again")


def test_a_page_without_the_marks_is_an_error():
    with pytest.raises(ValueError, match="no marks named growth"):
        between_marks(PAGE, "growth", "new")


@pytest.mark.parametrize(
    ("page", "name"), [("docs/performance.md", "figures"), ("docs/performance.md", "growth"), ("README.md", "speed")]
)
def test_the_page_has_the_marks(page, name):
    page = (ROOT / page).read_text()
    assert "new figures" in between_marks(page, name, "new figures")
