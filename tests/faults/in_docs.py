"""Results → the tables of docs/guarantees.md, between two marks for each protocol if the file has them."""

import datetime as dt
import string
from pathlib import Path

from cells import AMQP_MODES, STOMP_MODES, cells, faults_of, points_of

SECTIONS = {"faults": STOMP_MODES, "faults over AMQP": AMQP_MODES}


def write(path: Path, results):
    """A section none of whose modes was run stays as it is."""
    text = path.read_text() if path.exists() else ""
    for name, modes in SECTIONS.items():
        found = [result for result in results if result.cell.mode in modes]
        if found:
            text = _replaced(text, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", _lines(modes, found))
    path.write_text(text if text.endswith("\n") else text + "\n")


def _replaced(text, begin, end, lines):
    section = "\n".join([begin, *lines, end])
    if begin not in text:
        return text + section + "\n"
    before, _, rest = text.partition(begin)
    return before + section + rest.partition(end)[2]


def _lines(modes, results):
    by_name = {result.cell.name: result for result in results}
    sent = sum(result.sent for result in results)
    bad = sum(not result.ok for result in results)
    yield (
        f"`make faults` on {dt.datetime.now(dt.UTC):%Y-%m-%d}: {len(results)} cells, {sent:,} messages,"
        f" {sum(result.lost for result in results)} lost, {bad} cells failed."
        " Each cell shows *lost / duplicated* messages; a letter is the reason why the cell is not run."
    )
    letters = {}
    for mode, name in modes.items():
        yield from ["", f"**{name}**", ""]
        faults = faults_of(mode)
        yield f"| point | {' | '.join(faults.values())} |"
        yield "|---" * (len(faults) + 1) + "|"
        for point, words in points_of(mode).items():
            cellular = [_cell(cell, by_name, letters) for cell in cells() if (cell.mode, cell.point) == (mode, point)]
            yield f"| {words} | {' | '.join(cellular)} |"
    yield ""
    yield from (f"- {letter}: {reason}" for reason, letter in letters.items())


def _cell(cell, by_name, letters):
    if cell.reason is not None:
        return letters.setdefault(cell.reason, string.ascii_lowercase[len(letters)])
    result = by_name.get(cell.name)
    if result is None:
        return "not run"
    figures = f"{result.lost} / {result.duplicated}"
    return figures if result.ok else f"**{figures}: {result.verdict.splitlines()[0]}**"
