"""The reference pages say what the code says, and the tool notices when they do not."""

import importlib.util
import re
from pathlib import Path

import pytest

from pyspark_jms.columns.schema import COLUMNS, IGNORED_BY_SINK, SINK_ONLY
from pyspark_jms.errors import JMSError
from pyspark_jms.options.table import OPTIONS
from pyspark_jms.stomp.dialects import DIALECTS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pages(reference, tmp_path):
    """A copy of the pages, tables and all."""
    for name in reference.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def test_every_option_is_a_row(reference):
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in reference.options_table().splitlines()]
    assert rows[:2] == [["option", "for", "default", "meaning"], ["---"] * 4]
    assert [row[0] for row in rows[2:]] == [f"`{option.name}`" for option in OPTIONS]
    assert all(len(row) == 4 and row[3] for row in rows[2:])
    assert ["`maxBytesPerTrigger`", "read", "`64m`"] in [row[:3] for row in rows]


def every_class(error):
    return {error} | {found for kind in error.__subclasses__() for found in every_class(kind)}


def test_every_code_that_can_be_raised_is_a_row_with_a_meaning(reference):
    groups = {"JMS_ERROR", "JMS_OPTION", "JMS_LINK", "JMS_MESSAGE"}
    codes = {error.code for error in every_class(JMSError)} - groups
    rows = [line.split(" | ") for line in reference.errors_table().splitlines()[2:]]
    assert {row[0].strip("| `") for row in rows} == codes
    assert all(re.fullmatch(r"[A-Z].*\. \|", row[3]) for row in rows), rows
    assert ["| `JMS_INVALID_SELECTOR`", "`InvalidSelectorException`", ""] in [row[:3] for row in rows]


def test_check_passes_on_pages_that_were_just_written_and_names_a_stale_one(reference, pages, capsys):
    assert reference.main([], pages) == 0
    assert reference.main(["--check"], pages) == 0
    page = pages / "docs/options.md"
    text = page.read_text()
    page.write_text(text.replace("`brokerUrl`", "`brokerURL`", 1))
    assert reference.main(["--check"], pages) == 1
    assert capsys.readouterr().out == "out of date: docs/options.md. Run python tools/reference.py.\n"
    assert "brokerURL" in page.read_text()
    assert reference.main([], pages) == 0
    assert page.read_text() == text


def test_what_stands_around_a_table_stays(reference):
    page = f"# Head\n\n{reference.BEGIN}\nold\n{reference.END}\n\nfoot\n"
    assert reference.rewritten(page, "| new |") == (
        f"# Head\n\n{reference.BEGIN}\n\n| new |\n\n{reference.END}\n\nfoot\n"
    )


def test_a_page_without_markers_is_an_error(reference):
    with pytest.raises(ValueError, match="begin"):
        reference.rewritten("# Head\n", "| new |")


def test_the_schema_page_has_every_column_in_order_and_knows_what_the_sink_ignores():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", (ROOT / "docs/schema.md").read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [*COLUMNS, *SINK_ONLY]
    assert {name for name, written in rows if written == "ignored"} == IGNORED_BY_SINK


def test_every_dialect_is_a_column_and_every_fact_has_a_word_for_it(reference):
    head, _, *rows = [line.strip("|").split(" | ") for line in reference.brokers_table().splitlines()]
    assert [name.strip(" `") for name in head[1:]] == list(DIALECTS)
    assert all(len(row) == 1 + len(DIALECTS) and all(cell.strip() for cell in row) for row in rows)
    by_fact = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    assert by_fact["one transaction for each task (`transaction=task`)"] == ["yes", "yes", "refused"]
    assert by_fact["`JMSMessageID`"] == ["no", "yes", "if the producer set one"]
