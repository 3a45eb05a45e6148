"""Records of cells → the tables of docs/fault-matrix.md: a section for the modes of one table, between two marks.

    python tests/faults/in_docs.py docs/fault-matrix.md results.jsonl ...

A section is written when each of its cells has a record. So the run of one mode cannot delete the table of another.
"""

import argparse
import re
import string
import sys
from pathlib import Path

from cells import AMQP_MODES, EXACTLY_ONCE, RABBITMQ_MODES, READERS, STOMP_MODES, cells, faults_of, points_of
from records import read
from say import say

SECTIONS = {
    "faults": STOMP_MODES,
    "faults over AMQP": {mode: words for mode, words in AMQP_MODES.items() if mode not in EXACTLY_ONCE},
    "faults of exactly-once over AMQP": {
        mode: words for mode, words in AMQP_MODES.items() if mode in EXACTLY_ONCE - READERS
    },
    "faults of tasks that receive": {mode: words for mode, words in AMQP_MODES.items() if mode in READERS},
    "faults with RabbitMQ": RABBITMQ_MODES,
}
RESULT = "<!-- result: begin -->", "<!-- result: end -->"
_WITHOUT_ID = "†"
_TABLE = re.compile(r"^\*\*(.+)\*\*\n\n((?:\|.+\n)+)", re.MULTILINE)


def write(path, records, *, partial=False):
    """Of several records of a cell the last one counts. Returns which sections are not written, and why.

    A section without any record stays as it is. ``partial``: cells without a record are ``not run``.
    """
    text = path.read_text() if path.exists() else ""
    last = {record.name: record for record in records}
    left = []
    for name, modes in SECTIONS.items():
        wanted = [cell.name for cell in cells() if cell.mode in modes and cell.reason is None]
        found = {cell: last[cell] for cell in wanted if cell in last}
        if len(found) == len(wanted) or (found and partial):
            text = _replaced(
                text, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", _lines(modes, found, len(wanted))
            )
        elif found:
            left.append(f"{name}: {len(wanted) - len(found)} of {len(wanted)} cells have no result")
    if RESULT[0] in text:
        text = _replaced(text, *RESULT, ["", *result(text), ""])
    path.write_text(text if text.endswith("\n") else text + "\n")
    return left


def _replaced(text, begin, end, lines):
    section = "\n".join([begin, *lines, end])
    if begin not in text:
        return text + section + "\n"
    before, _, rest = text.partition(begin)
    return before + section + rest.partition(end)[2]


def result(text):
    """A line for each table of the page: the sums of its cells."""
    yield "| job | cells that ran | messages lost | duplicated |"
    yield "|---|---|---|---|"
    for name, table in _TABLE.findall(text):
        counts = re.findall(r"\| \**(?:(\d+) lost, )?(\d+)", table)
        lost, duplicated = (sum(int(each or 0) for each in column) for column in zip(*counts, strict=True))
        yield f"| {name} | {len(counts)} | {lost:,} | {duplicated:,} |"


def _lines(modes, by_name, wanted):
    records = by_name.values()
    sent = sum(record.sent for record in records)
    bad = sum(not record.ok for record in records)
    days = sorted({record.day for record in records})
    ran = f"{len(records)} of {wanted}" if len(records) < wanted else wanted
    yield (
        f"`make faults` on {' to '.join(dict.fromkeys((days[0], days[-1])))}: {ran} cells, {sent:,} messages,"
        f" {sum(record.lost for record in records)} lost, {bad} cells failed."
        " Each cell shows how many messages were duplicated; a letter is the reason why the cell is not run."
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
    if any(_is_without_id(record) for record in records):
        yield f"- {_WITHOUT_ID}: only messages without ids"


def _cell(cell, by_name, letters):
    if cell.reason is not None:
        return letters.setdefault(cell.reason, string.ascii_lowercase[len(letters)])
    record = by_name.get(cell.name)
    if record is None:
        return "not run"
    lost = f"{record.lost} lost, " if record.lost else ""
    counts = f"{lost}{record.duplicated}{_WITHOUT_ID if _is_without_id(record) else ''}"
    return counts if record.ok else f"**{counts}: {record.verdict.splitlines()[0]}**"


def _is_without_id(record):
    return record.without_id == record.duplicated > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("results", type=Path, nargs="+", help="what matrix.py --results wrote; later files count more")
    parser.add_argument("--partial", action="store_true", help="write sections that lack cells too, as not run")
    options = parser.parse_args()
    records = [record for path in options.results for record in read(path)]
    left = write(options.page, records, partial=options.partial)
    say(*(f"not written: {section}" for section in left))
    return bool(left or not records)


if __name__ == "__main__":
    sys.exit(main())
