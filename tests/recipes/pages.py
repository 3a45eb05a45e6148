"""The files and the output that a recipe shows, on a page of docs.

A comment before a block names what the block is.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs"
_FILE = re.compile(r"<!-- file: (\S+) -->\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"<!-- printed by: (.+?) -->\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def names():
    """Paths below the folder of the pages that show a file."""
    pages = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in sorted(FOLDER.rglob("*.md"))}
    return [page for page, text in pages.items() if _FILE.search(text)]


def files(page):
    """Path of the file -> text of its block."""
    return dict(_FILE.findall((FOLDER / page).read_text()))


def output(page, program):
    """What the page says that the program prints."""
    found = dict(_OUTPUT.findall((FOLDER / page).read_text()))
    return found[program]


def refreshed(text):
    """The page with the present text of its files."""
    return _FILE.sub(lambda found: found[0].replace(found[2], (ROOT / found[1]).read_text()), text)


if __name__ == "__main__":  # after a change of a recipe's code
    for path in map(FOLDER.joinpath, names()):
        path.write_text(refreshed(path.read_text()))
