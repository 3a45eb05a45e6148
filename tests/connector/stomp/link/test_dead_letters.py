"""What a dead letter looks like to whoever reads it, on a real broker."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rawstomp import RawStomp, read_all

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage
from pyspark_jms.network.settings import TlsSettings
from pyspark_jms.stomp.link.dead_letters import send_dead_letters

HEAD = b"""MESSAGE
subscription:1
message-id:5,77
destination:orders
correlation-id:a\\cb
expires:1700000000000
redelivered:false
priority:8
persistent:false
reply-to:queue\\c//answers
timestamp:1700000000000
type:order
destination-type:ANYCAST
transaction:other
city:Z\xc3\xbcrich\\nN
city:second
nul:a\0b
_AMQ_GROUP_ID:g
_AMQ_DUPL_ID:d
_AMQ_OperationName:destroyQueue
spark_jms_error:an older one
spark_jms_body:map
content-length:3
ack:5,77"""
BODY = b"\0\xff\n"
ID = b"5,77"


def letter(body=BODY, reason="element 1 of the map is not of type int"):
    """``body``: of a message in a block, or in a file."""
    if isinstance(body, bytes):
        frame = HEAD + b"\n\n" + body + b"\0\n"
        heads, ends = (index_of(np.array([position])) for position in (len(HEAD), len(frame)))
        message = MessageBlock(frame, heads, ends, [ID])
    else:
        message = OversizedMessage(HEAD, ID, body)
    return DeadLetter(message, reason, "queue://orders")


@pytest.mark.parametrize(
    "body", [BODY, io.BytesIO(BODY), b"", io.BytesIO()], ids=["bytes", "file", "none", "empty file"]
)
def test_properties_and_body_are_kept_and_what_a_broker_sets_is_not(broker, queue, settings_for, body):
    send_dead_letters(settings_for(broker), queue, [letter(body)])
    (found,) = read_all(broker, queue)
    assert found.body == (body if isinstance(body, bytes) else body.getvalue())
    expected = {
        "correlation-id": "a:b", "priority": "8", "persistent": "true", "expires": "0", "reply-to": "queue://answers",
        "type": "order", "city": "Zürich\nN", "spark_jms_body": "map", "spark_jms_source": "queue://orders",
        "spark_jms_error": "element 1 of the map is not of type int", "spark_jms_message_id": "77",
    }  # fmt: skip
    assert expected.items() <= found.headers.items()
    assert not {"nul", "_AMQ_GROUP_ID", "_AMQ_DUPL_ID", "_AMQ_OperationName"} & found.headers.keys()
    assert found.headers["timestamp"] != "1700000000000"


def test_a_long_reason_is_cut(broker, queue, settings_for):
    send_dead_letters(settings_for(broker), queue, [letter(reason="x" * 5000)])
    assert len(read_all(broker, queue)[0].headers["spark_jms_error"]) == 1000


def test_all_or_none(secured, settings_for):
    with pytest.raises(Exception, match="JMS_"):
        send_dead_letters(settings_for(secured), "closed.dead", [letter(), letter()])
    assert not secured.has_queue("closed.dead")


def test_a_large_one_over_tls(secured, settings_for, authority):
    """Written by another thread, after this one has gone on."""
    body = bytes(range(256)) * 20_000
    letters = [letter(io.BytesIO(body)), letter()]
    settings = settings_for(secured, tls=TlsSettings(ca_file=authority.cert), receipt_timeout=100)
    send_dead_letters(settings, "large", letters)
    plain = SimpleNamespace(url=secured.plain_url, user=secured.user, password=secured.password)
    with RawStomp(plain) as client:
        assert [found.body for found in client.read("large", wanted=2)] == [body, BODY]
