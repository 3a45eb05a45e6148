"""The pages show the code that the tests run."""

import re
from pathlib import Path

import pages
import pytest

RECIPES = [page for page in pages.names() if page != "index.md"]
SECTIONS = ("## What you get", "## The code", "## Run it", "## On a crash")
CODE = {".py", ".yml", ".sh"}
WORDS, WORDS_OF_A_FILE = 300, 150
"""The most prose of a page, and how much more it may have for each file that it shows."""


@pytest.mark.parametrize("page", RECIPES)
def test_a_page_shows_its_files_as_they_are(page):
    shown = pages.files(page)
    assert shown, "no block with a comment that names its file"
    for name, text in shown.items():
        assert (pages.ROOT / name).read_text() == text, f"{name} and its block in {page} differ"


@pytest.mark.parametrize("page", RECIPES)
def test_a_page_says_under_which_name_to_save_each_file(page):
    text = (pages.FOLDER / page).read_text()
    for name in pages.files(page):
        before = text.partition(f"<!-- file: {name} -->")[0].strip().splitlines()[-1]
        assert Path(name).name in before or "notebook.ipynb" in before, f"{page}: {before}"


def test_every_program_is_on_a_page():
    shown = {name for page in RECIPES for name in pages.files(page)}
    own = {"conftest.py", "pages.py"}
    folder = Path(__file__).parent
    programs = {path for path in folder.rglob("*.*") if path.suffix in CODE and path.name not in own}
    programs = {path for path in programs if not path.name.startswith("test_") and "__pycache__" not in path.parts}
    assert {str(path.relative_to(pages.ROOT)) for path in programs} == shown


@pytest.mark.parametrize("page", RECIPES)
def test_a_page_has_its_sections_in_order_and_few_minutes_of_text(page):
    text = (pages.FOLDER / page).read_text()
    found = re.findall(r"^## .*$", text, re.MULTILINE)
    assert [section for section in found if section in SECTIONS] == list(SECTIONS)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= WORDS + WORDS_OF_A_FILE * len(pages.files(page))


def test_the_index_lists_every_page():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (pages.FOLDER / "index.md").read_text()))
    assert linked == set(RECIPES)
