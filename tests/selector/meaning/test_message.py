import pytest

from jms_selector.meaning.message import Message
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.jms.headers import SELECTOR_SCHEMA


def test_a_message_from_plain_values():
    message = Message.of(
        {"JMSTimestamp": 5, "JMSPriority": 4},
        SELECTOR_SCHEMA,
        a=1,
        b=1 << 40,
        c=True,
        d=1.5,
        e="x",
        f=Value(Kind.BYTE, 1),
    )
    assert message.headers == {"JMSTimestamp": Value(Kind.LONG, 5), "JMSPriority": Value(Kind.INT, 4)}
    assert [v.kind for v in message.properties.values()] == ["int", "long", "boolean", "double", "string", "byte"]
    with pytest.raises(TypeError, match="list"):
        Message.of(a=[1])
