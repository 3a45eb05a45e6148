"""Reads docs/brokers.md: the table of facts about each broker, and the list of untested facts."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "brokers.md"


def table():
    """Broker -> fact -> text of the table."""
    written = PAGE.read_text(encoding="utf-8").split("<!-- written by", 1)[1].split("<!-- end -->")[0]
    head, _, *rows = [_cells(line) for line in written.splitlines() if line.startswith("|")]
    return {name.strip("`"): {row[0]: row[column] for row in rows} for column, name in enumerate(head[1:], 1)}


def untested():
    """The facts that the page lists as not tested."""
    listed = PAGE.read_text(encoding="utf-8").split("No test checks:\n", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^- (.+?): ", listed, re.MULTILINE))


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]
