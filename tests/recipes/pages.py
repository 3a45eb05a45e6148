"""The files and the output that a recipe shows: a page of docs/recipes, or docs/bad-messages.md.

A comment before a block names what the block is.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recipes"
_FILE = re.compile(r"<!-- file: (\S+) -->\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"<!-- printed by: (\S+) -->\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


BAD_MESSAGES = "../bad-messages.md"


def names():
    """Paths below the folder."""
    return [*sorted(path.name for path in FOLDER.glob("*.md")), BAD_MESSAGES]


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
