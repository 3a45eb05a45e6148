"""What Java clients send and get: every kind of body, element, property and header, and how two messages compare."""

from py4j.protocol import Py4JError

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import JmsClient, Typed

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
