"""The reference pages say what the code says, and the tool notices when they do not."""

import re
from pathlib import Path

import pytest

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.columns.schema import COLUMNS, IGNORED_BY_SINK, SINK_ONLY
from pyspark_jms.errors import JMSError
from pyspark_jms.options.names import _KAFKA, unknown_option
from pyspark_jms.options.table import OPTIONS
from pyspark_jms.stomp.dialects import DIALECTS
from tools import reference

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(tmp_path):
    """A copy of the pages, tables and all."""
    for name in reference.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def test_every_option_is_a_row_of_its_group():
    text = reference.options_tables()
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == [group["title"] for group in reference.GROUPS]
    anchors = re.findall(r'^\| <a id="(\w+)"></a>`(\w+)` ', text, re.MULTILINE)
    assert anchors == [(name.lower(), name) for group in reference.GROUPS for name in group["options"]]
    text = re.sub(r'<a id="\w+"></a>', "", text)
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows] == [f"`{name}`" for group in reference.GROUPS for name in group["options"]]
    assert ["`partitionBytes`", "read", "`16m`"] in [row[:3] for row in rows]
    assert ["`maxMessagesPerTrigger`", "`maxOffsetsPerTrigger`"] in [[row[0], row[-1]] for row in rows]


def test_every_option_is_in_one_group():
    """A new option needs a place in the reference."""
    options = {option.name for option in OPTIONS}
    assert sorted(name for group in reference.GROUPS for name in group["options"]) == sorted(options)
    assert not reference.KAFKA.keys() - options


def test_a_name_of_kafka_is_an_option_of_both_or_refused_as_one_of_kafka():
    options = {option.name for option in OPTIONS}
    for name in {name for names in reference.KAFKA.values() for name in names.split(", ")} - options:
        assert "option of format kafka" in unknown_option(name, "source").fact, name


def every_class(error):
    return {error} | {found for kind in error.__subclasses__() for found in every_class(kind)}


def test_every_code_that_can_be_raised_is_a_section_with_a_cause():
    groups = {"JMS_ERROR", "JMS_OPTION", "JMS_LINK", "JMS_MESSAGE"}
    raised = [error for error in every_class(JMSError) if error.code not in groups]
    text = reference.errors_text()
    sections = re.findall(r"^### (\w+)$(?:(?!^#)[\s\S])*?^- \*\*Cause:\*\* [A-Z].*\.$", text, re.MULTILINE)
    assert sorted(sections) == sorted({error.code for error in raised})
    transient = re.findall(r"\[`(\w+)`\]\(#(\w+)\)", text.partition("## Every code")[0])
    assert all(anchor == code.lower() for code, anchor in transient)
    assert {code for code, _ in transient} == {error.code for error in raised if error.transient}
    assert "### JMS_INVALID_SELECTOR\n\nJMS: `InvalidSelectorException`.\n\n- **Symptom:** " in text


def test_every_code_has_a_symptom_and_a_remedy_and_no_other_code_has():
    groups = {"JMS_ERROR", "JMS_OPTION", "JMS_LINK", "JMS_MESSAGE"}
    assert reference.ERROR_TEXTS.keys() == {error.code for error in every_class(JMSError)} - groups
    for code, texts in reference.ERROR_TEXTS.items():
        assert texts.keys() == {"symptom", "remedy"}, code
        assert all(text.endswith(".") for text in texts.values()), code


def test_every_option_of_kafka_has_an_answer():
    table = reference.kafka_table()
    assert all(f"`{name}`" in table for name in _KAFKA)
    assert "| `maxOffsetsPerTrigger` | Use maxMessagesPerTrigger, or maxBytesPerTrigger. |" in table


def test_every_command_is_a_section_with_its_arguments():
    text = reference.commands_text()
    assert {"### pyspark-jms demo", "### pyspark-jms broker", "### pyspark-jms check"} <= set(text.splitlines())
    assert "| `--port PORT` | `61613` |" in text
    assert "| `--broker-url URL` | required |" in text
    assert "(default: " not in text


def test_check_passes_on_pages_that_were_just_written_and_names_a_stale_one(pages, capsys):
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


def test_what_stands_around_a_table_stays():
    page = f"# Head\n\n{reference.BEGIN}\nold\n{reference.END}\n\nfoot\n"
    assert reference.rewritten(page, "| new |") == (
        f"# Head\n\n{reference.BEGIN}\n\n| new |\n\n{reference.END}\n\nfoot\n"
    )


def test_a_page_without_markers_is_an_error():
    with pytest.raises(ValueError, match="begin"):
        reference.rewritten("# Head\n", "| new |")


def test_the_schema_page_has_every_column_in_order_and_knows_what_the_sink_ignores():
    page = (ROOT / "docs/schema.md").read_text().partition("## A sample row")[0]
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [*COLUMNS, *SINK_ONLY]
    assert {name for name, written in rows if written == "ignored"} == IGNORED_BY_SINK


def rows_of(table):
    """The names of the columns, and fact -> cells."""
    head, _, *rows = [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in table.splitlines()]
    assert all(len(row) == len(head) and all(row) for row in rows)
    return head[1:], {fact: cells for fact, *cells in rows}


def test_every_fact_has_a_word_for_each_protocol_of_a_broker():
    tables = {broker: rows_of(reference.features_table(broker)) for broker in DIALECTS}
    assert {tuple(head) for head, _ in tables.values()} == {("STOMP", "AMQP")}
    by_task = "one transaction for each task (`transaction=task`)"
    assert {broker: facts[by_task] for broker, (_, facts) in tables.items()} == {
        "artemis": ["yes", "yes"],
        "classic": ["yes", "yes"],
        "rabbitmq": ["refused", "refused"],
    }
    assert tables["artemis"][1]["JMSMessageID"] == ["no", "if the producer set one"]


def test_every_other_broker_is_a_column():
    head, facts = rows_of(reference.other_features_table())
    assert set(head) == AMQP_DIALECTS.keys() - DIALECTS.keys()
    assert facts["topics, durable subscriptions"][head.index("broker-j")] == "yes"
    assert facts["topics, durable subscriptions"][head.index("solace")] == "refused"


def test_a_refusal_that_begins_with_an_option_spells_it():
    assert "| deliveryGuarantee=exactly-once is given" in reference.refusals_table("artemis")
    assert "| The broker" in reference.refusals_table("artemis")


def test_the_compatibility_matrix_has_the_newest_release_of_spark_first_and_then_those_of_make_test_older():
    (older,) = re.findall(r"^OLDER +:= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    _, _, newest, *rows = [line.strip("| ").split(" | ") for line in reference.compatibility_table().splitlines()]
    assert newest[-1] == "`make test test-deep`"
    rows = [row for row in rows if row[-1] != "`make test-yarn`"]
    assert rows
    assert {row[0] for row in rows} <= set(older.split())
    assert {row[-1] for row in rows} == {"`make test-spark`"}
    assert all("Artemis" in row[-2] for row in (newest, *rows))


def test_every_refusal_of_a_dialect_is_in_a_table():
    pages = {
        broker: [line.split(" | ") for line in reference.refusals_table(broker).splitlines()] for broker in DIALECTS
    }
    others = [line.split(" | ") for line in reference.other_refusals_table().splitlines()]
    for protocol, dialects in (("STOMP", DIALECTS), ("AMQP", AMQP_DIALECTS)):
        for name, dialect in dialects.items():
            for feature in dialect.cannot:
                if name in pages:
                    assert any(feature.value in row[0] and row[1] == protocol for row in pages[name])
                else:
                    named = {row[1] for row in others if row[0] == f"| {feature.value}"}
                    assert named == {"all"} or any(f"`{name}`" in each for each in named)
