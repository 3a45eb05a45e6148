import json
import subprocess
import sys

from commands import program
from numbered import fill
from waiting import await_count, await_value

from pyspark_jms.testing import JmsClient


def test_shows_messages_and_takes_none(commands, broker, queue):
    fill(broker, queue, 15)
    assert commands("peek", "--queue", queue, "--max", "12") == 0
    shown = commands.output.splitlines()
    assert sum(line.startswith("   text ") for line in shown) == 12
    assert "   text 0" in shown
    assert any(line.startswith("   n") and line.endswith("= 11") for line in shown)
    rows = commands.json("peek", "--queue", queue)
    assert [(row["text"], row["properties"]["n"]) for row in rows] == [(f"text {n}", str(n)) for n in range(10)]
    await_count(broker, queue, 15)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


def test_a_selector_chooses_and_an_empty_queue_says_so(commands, broker, queue):
    broker.create_queue(queue)
    assert commands("peek", "--queue", queue) == 0
    assert commands.output == f"queue://{queue} shows no message\n"
    fill(broker, queue, 4)
    (row,) = commands.json("peek", "--queue", queue, "--selector", "n = '2'")
    assert row["text"] == "text 2"
    assert commands("peek", "--queue", queue, "--selector", "n = ") == 1
    assert commands.errors.startswith("[JMS_INVALID_SELECTOR]")


def test_what_it_prints_can_be_sent_again(commands, broker, queue, tmp_path):
    with JmsClient(broker) as java:
        java.send(queue, "text")
        java.send(queue, b"\x00\x01")
    lines = [
        {"map": {"k": 1, "s": {"type": "short", "value": 3}, "none": None}, "JMSType": "m"},
        {"stream": [1.5, "a", True, 1 << 40]},
        {"text": "typed", "properties": {"i": 1, "l": 1 << 40, "d": 0.5, "b": False, "s": "x"}},
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    assert commands("send", "--queue", queue, "--json-lines", str(file)) == 0
    first = commands.json("peek", "--queue", queue)
    assert [row["body_type"] for row in first] == ["text", "bytes", "map", "stream", "text"]
    assert first[4]["property_types"] | {"s": "string"} | {"JMSXDeliveryCount": "int"} == {
        "i": "int", "l": "long", "d": "double", "b": "boolean", "s": "string", "JMSXDeliveryCount": "int"
    }  # fmt: skip
    file.write_text("\n".join(map(json.dumps, first)))
    assert commands("send", "--queue", f"{queue}.2", "--json-lines", str(file)) == 0
    again = commands.json("peek", "--queue", f"{queue}.2")
    own = {"sequence", "JMSMessageID", "JMSDestination", "JMSTimestamp", "delivery_id", "content_type"}
    assert [{k: v for k, v in row.items() if k not in own} for row in again] == [
        {k: v for k, v in row.items() if k not in own} for row in first
    ]


def test_long_bodies_are_cut_only_for_people(commands, broker, queue):
    fill(broker, queue, 1, size=1_000)
    assert commands("peek", "--queue", queue) == 0
    assert "… (1,000 characters)" in commands.output
    (row,) = commands.json("peek", "--queue", queue)
    assert len(row["text"]) == 1_000


def test_a_reader_that_has_enough_is_no_error(commands_on, broker, queue):
    fill(broker, queue, 500, size=500)
    command = program("peek", *commands_on(broker).access, "--queue", queue, "--json", "--max", "500")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert json.loads(process.stdout.readline())["text"].startswith("text 0")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 141


def test_an_output_that_is_full_or_closed(commands, broker, queue, monkeypatch):
    fill(broker, queue, 1)
    for command in (["peek", "--queue", queue], ["check"]):  # it prints as it reads; all at the end
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            monkeypatch.setattr(sys, "stdout", full)
            assert commands(*command) == 1
            assert "No space left on device" in commands.errors
    monkeypatch.setattr(sys, "stdout", None)
    assert commands("peek", "--queue", queue, "--json") == 0
    assert commands.errors == ""
