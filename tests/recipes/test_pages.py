"""The pages show the code that the tests run."""

import re
from pathlib import Path

import pages
import pytest

RECIPES = pages.names()
CODE = {".py", ".yml", ".sh"}


@pytest.mark.parametrize("page", RECIPES)
def test_a_page_shows_its_files_as_they_are(page):
    shown = pages.files(page)
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
def test_a_page_says_what_happens_on_a_crash(page):
    assert re.search(r"^(?:#+ |- \*\*|\*\*)On a crash", (pages.FOLDER / page).read_text(), re.MULTILINE)


def test_the_readme_lists_every_page():
    table = (pages.ROOT / "README.md").read_text().partition("## Find a page")[2]
    listed = set(re.findall(r"\(docs/([\w./-]+\.md)", table))
    assert set(RECIPES) <= listed
