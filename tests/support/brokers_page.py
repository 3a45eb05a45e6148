"""Reads the table of facts of each broker's page in docs/brokers."""

from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "brokers"
BROKERS = ("artemis", "classic", "rabbitmq")
UNTESTED = {"tested versions"}
"""The facts that the pages list as not tested. The last lines of a run name the versions of the run."""


def facts(broker, protocol="STOMP"):
    """Fact -> text of the broker's table in the column of the protocol."""
    page = (PAGES / f"{broker}.md").read_text(encoding="utf-8")
    written = page.split("<!-- written by", 1)[1].split("<!-- end -->")[0]
    head, _, *rows = [_cells(line) for line in written.splitlines() if line.startswith("|")]
    column = head.index(protocol)
    return {row[0]: row[column] for row in rows}


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]
