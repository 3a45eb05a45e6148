"""docs/brokers.md as its tests read it: what the table says of each broker, and which facts it says are not tested."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "brokers.md"


def table():
    """Broker → fact → what is said."""
    written = PAGE.read_text(encoding="utf-8").split("<!-- written by", 1)[1].split("<!-- end -->")[0]
    head, _, *rows = [_cells(line) for line in written.splitlines() if line.startswith("|")]
    return {name.strip("`"): {row[0]: row[column] for row in rows} for column, name in enumerate(head[1:], 1)}


def untested():
    """The facts that the page lists as not held by a test."""
    listed = PAGE.read_text(encoding="utf-8").split("No test holds:\n", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^- (.+?): ", listed, re.MULTILINE))


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]
