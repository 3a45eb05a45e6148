"""Results → the tables of docs/guarantees.md, between two marks if the file has them."""

import datetime as dt
import string
from pathlib import Path

from cells import FAULTS, MODES, POINTS, cells

BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def write(path: Path, results):
    text = "\n".join([BEGIN, *_lines({result.cell.name: result for result in results}, results), END])
    old = path.read_text() if path.exists() else ""
    if BEGIN in old:
        before, _, rest = old.partition(BEGIN)
        text = before + text + rest.partition(END)[2]
    path.write_text(text if text.endswith("\n") else text + "\n")


def _lines(by_name, results):
    sent = sum(result.sent for result in results)
    bad = sum(not result.ok for result in results)
    yield (
        f"`make faults` on {dt.datetime.now(dt.UTC):%Y-%m-%d}: {len(results)} cells, {sent:,} messages,"
        f" {sum(result.lost for result in results)} lost, {bad} cells failed."
        " Each cell shows *lost / duplicated* messages; a letter is the reason why the cell is not run."
    )
    letters = {}
    for mode, name in MODES.items():
        yield from ["", f"**{name}**", ""]
        yield f"| point | {' | '.join(FAULTS.values())} |"
        yield "|---" * (len(FAULTS) + 1) + "|"
        for point, words in POINTS.items():
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
