"""Java → queue → Spark → queue → Java over AMQP: every body, element, property and header, on every broker.

The table of docs/typed-messages.md is what this test finds. ``WRITE_TABLE=1`` writes it anew.
"""

import os
import re
import uuid
from pathlib import Path

import pytest
from amqp_brokers import AMQP_BROKERS
from chosen_brokers import NO_TRANSFORMER, skip_as
from py4j.protocol import Py4JError
from pyspark.sql import functions as F

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import JmsClient, Typed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "typed-messages.md"
BEGIN, END = (
    "<!-- java round trip, written by tests/brokers/test_java_over_amqp.py -->\n",
    "<!-- end of java round trip -->",
)
NATIVE = {"artemis": "CORE", "artemis 2.44": "CORE", "classic": "OpenWire"}
QPID = "Qpid JMS"

VALUES = {
    "boolean": Typed("boolean", True),
    "byte": Typed("byte", -128),
    "short": Typed("short", 300),
    "int": Typed("int", -(2**31)),
    "smallInt": Typed("int", 5),
    "long": Typed("long", 5),
    "largeLong": Typed("long", 2**62),
    "float": Typed("float", 1.5),
    "double": Typed("double", 0.1),
    "string": Typed("string", "é:\\\n"),
    "empty": Typed("string", ""),
    "nothing": None,
}
_ELEMENTS = VALUES | {"char": Typed("char", "ü")}

CASES = {
    "text": {"body": "héllo 😀"},
    "text, empty": {"body": ""},
    "text, null": {"body_type": BodyType.TEXT},
    "text with NUL": {"body": "a\0b"},
    "bytes": {"body": b"\0\1\xff"},
    "bytes, empty": {"body": b""},
    "map of every type": {"body": _ELEMENTS | {"bytes": Typed("bytes", b"\0\xff")}},
    "map, empty": {"body": {}},
    "map with NUL and 😀 in a string": {"body": {"a": "\0 😀"}},
    "stream of every type but bytes": {"body": list(_ELEMENTS.values())},
    "stream with bytes": {"body": [b"\0\xff"]},
    "stream, empty": {"body": []},
    "object": {"body": "an object"},
    "message without a body": {},
    "properties of every type": {
        "body": "x",
        "properties": {f"p{name}": value for name, value in VALUES.items() if value},
    },
    "JMSType, JMSCorrelationID, JMSReplyTo, priority": {
        "body": "x",
        "type": "t\n:",
        "correlation_id": "c:\\ 1",
        "reply_to": "queue://rq",
        "priority": 7,
    },
    "JMSCorrelationID that begins with ID:": {"body": "x", "correlation_id": "ID:abc"},
    "JMSReplyTo a topic": {"body": "x", "reply_to": "topic://rt"},
    "not persistent": {"body": "x", "delivery_mode": DeliveryMode.NON_PERSISTENT},
    "JMSExpiration": {"body": "x", "time_to_live": 600_000},
    "JMSXGroupID, JMSXGroupSeq": {"body": "x", "properties": {"JMSXGroupID": "g", "JMSXGroupSeq": Typed("int", 3)}},
}
"""Arguments of ``JmsClient.send`` by the name of the case."""

_BY_PROVIDER = ("JMSX", "_AMQ", "__AMQ", "JMS_AMQP", "NATIVE_")
_SENT = {"JMSXGroupID", "JMSXGroupSeq"}


class JavaClients:
    """The Java clients of one broker by their names. One that a message has ended is replaced."""

    def __init__(self, makers):
        self._makers = makers
        self._clients = {}

    def __iter__(self):
        return iter(self._makers)

    def __getitem__(self, name) -> JmsClient:
        if name not in self._clients:
            self._clients[name] = self._makers[name]()
        return self._clients[name]

    def send(self, name, queue, case):
        arguments = dict(CASES[case])
        body, properties = arguments.pop("body", None), arguments.pop("properties", {})
        if case == "object":
            body = self[name]._machine.jvm.java.util.ArrayList()
        self[name].send(queue, body, properties=properties | {"case": case}, **arguments)

    def receive(self, name, queue, seconds=3.0):
        """What the consumer sees; None if nothing comes, and the error if it cannot read what comes."""
        try:
            message = self[name].receive(queue, seconds)
        except Py4JError as error:
            reason = str(error.java_exception.getClass().getSimpleName())
            self._clients.pop(name).close()
            return reason
        return None if message is None else seen(message)

    def close(self):
        for client in self._clients.values():
            client.close()


def sent(case):
    """What a consumer should see of a case."""
    given = CASES[case]
    body = "[]" if case == "object" else given.get("body")
    kinds = {str: BodyType.TEXT, bytes: BodyType.BYTES, dict: BodyType.MAP, list: BodyType.STREAM, type(None): None}
    kind = BodyType.OBJECT if case == "object" else given.get("body_type") or kinds[type(body)] or BodyType.MESSAGE
    return {
        "body_type": kind,
        "body": _typed(body),
        "properties": _typed(given.get("properties", {})),
        "type": given.get("type"),
        "correlation_id": given.get("correlation_id"),
        "reply_to": given.get("reply_to"),
        "delivery_mode": given.get("delivery_mode", DeliveryMode.PERSISTENT),
        "priority": given.get("priority", 4),
        "expires": "time_to_live" in given,
    }


def seen(message):
    return {
        "body_type": message.body_type,
        "body": message.body,
        "properties": {
            name: value
            for name, value in message.properties.items()
            if name in _SENT or (name != "case" and not name.startswith(_BY_PROVIDER))
        },
        "type": message.type,
        "correlation_id": message.correlation_id,
        "reply_to": message.reply_to,
        "delivery_mode": message.delivery_mode,
        "priority": message.priority,
        "expires": message.expiration > 0,
    }


def _typed(value):
    match value:
        case dict():
            return {name: each if each is None else Typed.of(each) for name, each in value.items()}
        case list():
            return [each if each is None else Typed.of(each) for each in value]
    return value


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] if name == "artemis 2.44" else []) for name in AMQP_BROKERS],
)
def broker(request):
    with AMQP_BROKERS[request.param]() as broker:
        yield request.param, broker


def clients_of(name, broker):
    makers = {QPID: lambda: JmsClient(broker.amqp_url, broker.user, broker.password)}
    if name in NATIVE:
        makers[NATIVE[name]] = lambda: JmsClient(broker)
    return JavaClients(makers)


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_java_to_spark_to_java(spark, broker):
    skip_as("classic-as-run", NO_TRANSFORMER)
    name, broker = broker
    access = {"brokerUrl": broker.amqp_url, "user": broker.user, "password": broker.password}
    clients = clients_of(name, broker)
    found = {}
    for producer in clients:
        for case in CASES:
            clients.send(producer, f"in.{slug(producer)}", case)
        rows = spark.read.format("jms").options(**access, queue=f"in.{slug(producer)}").load()
        for consumer in clients:
            prefix = f"queue://via.{slug(producer)}.{slug(consumer)}."
            name_of_case = F.regexp_replace(F.expr("properties['case']"), r"\W+", "-")
            again = rows.where("body_error IS NULL")  # the sink refuses the others
            again = again.withColumn("destination", F.concat(F.lit(prefix), name_of_case))
            again.write.format("jms").mode("append").options(**access).save()
            for case in CASES:
                via = clients.receive(consumer, f"{prefix.removeprefix('queue://')}{slug(case)}", seconds=1.0)
                lost = via != sent(case)
                if lost:
                    legs = {(producer, QPID), (QPID, consumer)}
                    unable = [leg for leg in legs if directly(clients, *leg, case) != sent(case)]
                    assert unable, f"{name}: {producer} → Spark → {consumer} loses {case}: {via}"
                found[producer, consumer, case] = lost
    clients.close()
    check_table(name, found)


def directly(clients, producer, consumer, case):
    """What the consumer gets of a message that never was in Spark. The client in the middle would be an AMQP client."""
    queue = f"direct.{slug(producer)}.{slug(consumer)}.{slug(case)}.{uuid.uuid4().hex[:6]}"
    clients.send(producer, queue, case)
    return clients.receive(consumer, queue)


def slug(text):
    return re.sub(r"\W+", "-", text)


def check_table(broker, found):
    """Each line of the page's table for this broker names the cases that the broker itself does not deliver."""
    lines = {}
    for (producer, consumer, case), lost in found.items():
        lines.setdefault(f"| {broker} | {producer} → Spark → {consumer} |", []).extend([case] if lost else [])
    wanted = [f"{begin} {'; '.join(cases) or '-'} |" for begin, cases in lines.items()]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    if os.environ.get("WRITE_TABLE"):
        kept = [line for line in table.splitlines() if not line.startswith(f"| {broker} |")]
        PAGE.write_text(before + BEGIN + "\n".join([*kept, *wanted]) + "\n" + END + after, encoding="utf-8")
    else:
        assert [line for line in table.splitlines() if line.startswith(f"| {broker} |")] == wanted
