"""Whatever a row holds, it is one message with the headers that it set: rows made to smuggle, on a real broker."""

import base64
import contextlib
import json
import random

import plain_encoder
import pyarrow as pa
import pytest
from broker_rows import write_batch
from column_types import batch_of
from rawstomp import RawStomp
from streaming import access

from pyspark_jms.errors import InvalidDestinationError, JMSSecurityError, TransactionRolledBackError

pytestmark = pytest.mark.broker

ROWS = 400
PIECES = [
    "", "\0", "\r", "\n", "\r\n", ":", "\\", "\\n", "\\c", "\\\\", '"', "{", "}", "a", " ", "\t", "\x85", "\u2028",
    "é", "雪", "🐘", "\ufeff", "\uffff", "\x1b", "content-length:0", "\n\n",
    "\n\n\0\nSEND\ndestination:forged\n\nforged\0",
    "\ndestination:forged", "\nreceipt:forged", "\nspark_jms_body:map", "\n\n\0ABORT\ntransaction:t\n\n\0", "x" * 300,
]  # fmt: skip
NAMES = ["p", "ack", "subscription", "é$雪", "n\0", "z\u200b_", "JMSXGroupID", "JMS_vendor", "X" * 200, "redelivered"]
OF_THE_BROKER = {
    "subscription", "message-id", "destination", "correlation-id", "expires", "redelivered", "priority", "persistent",
    "reply-to", "timestamp", "type", "destination-type", "content-type", "content-length", "ack", "transaction",
    "JMSXGroupID", "_AMQ_GROUP_ID", "_AMQ_SCHED_DELIVERY",
}  # fmt: skip


class Rows:
    """Rows of nasty texts, the same in every run."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def text(self):
        return "".join(self._random.choices(PIECES, k=self._random.randint(0, 5)))

    def element(self):
        text = self.text()
        raw = base64.b64encode(text.encode()).decode()
        kinds = [
            ("string", text),
            ("string", None),
            ("bytes", raw),
            ("char", "\0"),
            ("long", "-7"),
            ("double", "NaN"),
        ]
        kind, value = self._random.choice(kinds)
        return {"type": kind, "value": value}

    def row(self):
        names = self._random.sample(NAMES, k=self._random.randint(0, 4))
        row = {
            name: self.text() for name in ("JMSCorrelationID", "JMSType", "content_type") if self._random.random() < 0.7
        }
        row["properties"] = [(name, self.text()) for name in names]
        row["property_types"] = [(name, "string") for name in names if self._random.random() < 0.5]
        return row | self._random.choice([self.of_text, self.of_bytes, self.of_map, self.of_stream, dict])()

    def of_text(self):
        return {"text": self.text().replace("\0", "")}

    def of_bytes(self):
        return {"bytes": self.text().encode(), "body_type": self._random.choice(["bytes", "object"])}

    def of_map(self):
        names = {self.text() or "n" for _ in range(3)}
        return {"map": [(name, self.element()) for name in names]}

    def of_stream(self):
        return {"stream": [self.element() for _ in range(3)]}


@pytest.mark.parametrize("seed", range(2))
def test_each_row_is_one_message_and_sets_what_it_says(broker, queue, seed):
    rows = Rows(seed)
    sent = [rows.row() for _ in range(ROWS)]
    assert write_batch(access(broker), queue, batch_of(sent)) == (ROWS, 0)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=ROWS) + client.read(queue, quiet=0.5)
        forged = client.read("forged", quiet=0.2)
    assert (len(found), forged) == (ROWS, [])
    for message, row in zip(found, sent, strict=True):
        headers, body = plain_encoder.expected_frame(row, transaction="t")
        assert message.body == body
        _check_headers(message, dict(headers), row)


def _check_headers(message, expected, row):
    """Every property as it was set, and no header besides those and the broker's own."""
    values = {}
    for name, value in message.lines:
        values.setdefault(name, []).append(value)
    own = {name: value for name, value in row["properties"] if name != "JMSXGroupID"}
    for name, value in own.items():
        assert value in values[name]
    assert {name: values.get(name) for name in ("spark_jms_body", "spark_jms_types") if name in expected} == {
        name: [expected[name]] for name in ("spark_jms_body", "spark_jms_types") if name in expected
    }
    assert values.keys() <= OF_THE_BROKER | own.keys() | {"spark_jms_body", "spark_jms_types"}
    for column, header in (
        ("JMSCorrelationID", "correlation-id"),
        ("JMSType", "type"),
        ("content_type", "content-type"),
    ):
        if column in row:
            assert values[header][0] == row[column]
    if "spark_jms_types" in expected:
        assert json.loads(expected["spark_jms_types"]) == dict(row["property_types"])


NASTY_NAMES = ["a:b", "a\\b", "é🐘", "a b", "a\tb", "a\\nreceipt:forged", "queue://a", "{}[]<>"]


def test_a_destination_is_a_name_whatever_it_holds(broker, queue):
    names = [f"{queue} {name}" for name in NASTY_NAMES]
    rows = [{"text": name, "destination": f"queue://{name}", "JMSReplyTo": f"queue://{name}"} for name in names]
    assert write_batch(access(broker), None, batch_of(rows)) == (len(rows), 0)
    for name in names:
        with RawStomp(broker) as client:
            (message,) = client.read(name, wanted=1)
        assert (message.body.decode(), message.headers["reply-to"]) == (name, f"queue://{name}")
        assert "receipt" not in message.headers


@pytest.mark.parametrize("name", ["a\nb", "a\nreceipt:forged", "a\ndestination-type:MULTICAST\n\n\0"])
def test_a_destination_with_a_line_end_is_read_as_one_name(broker, queue, name):
    """The patterns of Artemis' permissions match no line end, so nobody may make such an address: its whole name is
    in the refusal.
    """
    rows = pa.record_batch({"text": ["x"], "destination": [f"queue://{queue} {name}"]})
    refused = InvalidDestinationError if "\0" in name else JMSSecurityError
    with pytest.raises(refused) as caught:
        send_until_refused(broker, rows)
    shown = f"on address {queue} {name}.".replace(":", "")  # an ERROR of Artemis escapes no colon, so they are lost
    assert refused is InvalidDestinationError or shown in str(caught.value)
    with RawStomp(broker) as client:
        assert client.read("b", quiet=0.1) == []


def send_until_refused(broker, rows):
    """Now and then Artemis closes the connection before its ERROR is out. Then, too, nothing was sent."""
    for _ in range(10):
        with contextlib.suppress(TransactionRolledBackError):
            write_batch(access(broker), None, rows)


def test_what_is_no_name_of_a_property_is_left_out_with_its_row_and_other_names_forge_nothing(broker, queue):
    bad = ["destination", "spark_jms_body", "JMSFoo"]
    names = [*PIECES[1:-1], "a b", "a-b", "null", *bad]
    rows = [{"text": str(n), "properties": [("ok", "1"), (name, "2")]} for n, name in enumerate(names)]
    sent = len(names) - len(bad)
    assert write_batch(access(broker), queue, batch_of(rows), onBadRow="drop") == (sent, len(bad))
    with RawStomp(broker) as client:
        assert [int(message.body) for message in client.read(queue, quiet=0.5)] == [*range(sent)]
