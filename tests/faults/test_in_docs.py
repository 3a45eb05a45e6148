"""Results of several runs of the matrix make one page, and a run of one mode deletes the table of no other."""

import re
from dataclasses import replace
from pathlib import Path

import in_docs
import pytest
import records
from cells import MODES, cells, faults_of, points_of
from play import Result

PAGE = Path(__file__).parents[2] / "docs" / "fault-matrix.md"
SOURCE, SINK = in_docs.SECTIONS["faults over AMQP"]


def of(mode, sent=10, day="2026-11-24"):
    """A record of each cell of the mode that is run."""
    found = [Result(cell, sent=sent) for cell in cells() if cell.mode == mode and cell.reason is None]
    return [records.record_of(result, day) for result in found]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("before\n\n<!-- faults over AMQP: begin -->\nold\n<!-- faults over AMQP: end -->\n\nafter\n")
    return path


def test_records_come_back_from_their_file(tmp_path):
    path = tmp_path / "results.jsonl"
    assert records.read(path) == []
    for record in of(SOURCE):
        records.append(path, record)
    assert records.read(path) == of(SOURCE)


def test_a_section_is_written_between_its_marks(page):
    source, sink = of(SOURCE, sent=1000), of(SINK, day="2026-11-25")
    assert in_docs.write(page, source + sink) == []
    text = page.read_text()
    assert text.startswith("before\n\n<!-- faults over AMQP: begin -->\n`make faults` on 2026-11-24 to 2026-11-25: ")
    assert f": {len(source + sink)} cells, {len(source) * 1000 + len(sink) * 10:,} messages, 0 lost, 0 cells" in text
    assert re.findall(r"^\*\*(.+)\*\*$", text, re.MULTILINE) == [MODES[SOURCE], MODES[SINK]]
    assert len(re.findall(r"(?<=\| )0(?= \|)", text)) == len(source + sink)
    assert "\nold\n" not in text
    assert text.endswith("\n<!-- faults over AMQP: end -->\n\nafter\n")


def test_a_section_that_lacks_cells_stays_unless_it_is_asked_for(page):
    before = page.read_text()
    (reason,) = in_docs.write(page, of(SOURCE))
    assert re.fullmatch(rf"faults over AMQP: {len(of(SINK))} of \d+ cells have no result", reason)
    assert page.read_text() == before
    assert in_docs.write(page, of(SOURCE), partial=True) == []
    assert page.read_text().count("| not run") == len(of(SINK))


def test_the_last_record_of_a_cell_counts(page):
    first = of(SOURCE)
    bad = replace(first[0], lost=3, verdict="3 lost\nTraceback")
    in_docs.write(page, [bad, *first, *of(SINK)])
    assert "0 lost, 0 cells failed" in page.read_text()
    in_docs.write(page, [*first, *of(SINK), bad])
    assert "3 lost, 1 cells failed" in page.read_text()
    assert "| **3 lost, 0: 3 lost** |" in page.read_text()
    assert f"| {MODES[SOURCE]} | {len(first)} | 3 | 0 |" in [*in_docs.result(page.read_text())]


def test_a_cell_shows_whether_only_messages_without_ids_were_duplicated(page):
    first, second, *rest = of(SOURCE)
    in_docs.write(
        page,
        [replace(first, duplicated=7, without_id=7), replace(second, duplicated=9, without_id=2), *rest, *of(SINK)],
    )
    text = page.read_text()
    assert "| 7† |" in text
    assert "| 9 |" in text
    assert "\n- †: only messages without ids\n" in text
    assert f"| {MODES[SOURCE]} | {2 + len(rest)} | 0 | 16 |" in [*in_docs.result(text)]


def test_each_table_of_the_page_has_the_points_and_faults_of_the_matrix():
    tables = re.findall(
        r"^\*\*(.+)\*\*\n\n\| point \| (.+) \|\n\|[-|]+\|\n((?:\|.+\n)+)", PAGE.read_text(), re.MULTILINE
    )
    expected = [MODES[mode] for modes in in_docs.SECTIONS.values() for mode in modes]
    assert [name for name, _, _ in tables] == expected
    assert tables
    modes = {words: mode for mode, words in MODES.items()}
    for name, faults, rows in tables:
        assert faults.split(" | ") == list(faults_of(modes[name]).values()), name
        assert re.findall(r"^\| (.+?) \|", rows, re.MULTILINE) == list(points_of(modes[name]).values()), name


def test_the_page_begins_with_the_sums_of_its_tables():
    text = PAGE.read_text()
    shown = text.partition(in_docs.RESULT[0])[2].partition(in_docs.RESULT[1])[0].strip().splitlines()
    assert shown == [*in_docs.result(text)]
    assert len(shown) == 2 + len(MODES)
