import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.amqp.columns.encode_destinations import NO_KIND, addresses_of, reply_addresses_of
from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, CLASSIC
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError
from pyspark_jms.jms.model import Destination

TOPIC = Destination.parse("topic://t")


def test_one_destination_is_constant():
    found = addresses_of(rows_of(text=["a", "b"]), ARTEMIS, TOPIC)
    assert (found.pieces, found.kinds.tolist()) == ([b"\xa1\x01t"], [1, 1])


def test_each_row_may_name_its_own():
    found = addresses_of(rows_of(destination=["topic://x", None, "q", "queue://q"]), ARTEMIS, TOPIC)
    assert join_rows(found.pieces).to_pylist() == [b"\xa1\x01x", b"\xa1\x01t", b"\xa1\x01q", b"\xa1\x01q"]
    assert found.kinds.tolist() == [1, 1, 0, 0]


def test_classic_has_the_kind_in_the_address():
    found = addresses_of(rows_of(destination=["topic://x", "q"]), CLASSIC, None)
    assert join_rows(found.pieces).to_pylist() == [b"\xa1\x09topic://x", b"\xa1\x09queue://q"]


def test_an_option_may_name_what_a_row_may_not():
    reserved = Destination.parse("queue://activemq.management")
    assert addresses_of(rows_of(text=["a"]), ARTEMIS, reserved).kinds.tolist() == [0]
    with pytest.raises(InvalidDestinationError, match="row 10 "):
        addresses_of(rows_of(destination=["activemq.management"]), ARTEMIS, None)
    with pytest.raises(InvalidDestinationError, match="comma"):
        addresses_of(rows_of(text=["a"]), CLASSIC, Destination.parse("queue://a,b"))


def test_reply_to_keeps_its_kind():
    texts = ["queue://a", None, "topic://b", "temp-queue://c", "temp-topic://d", "e", "f://g"]
    found = reply_addresses_of(rows_of(JMSReplyTo=texts), AMQP)
    assert join_rows(found.pieces).to_pylist() == [
        b"\xa1\x01a",
        b"\x40",
        *(b"\xa1\x01" + name for name in (b"b", b"c", b"d", b"e")),
        b"\xa1\x05f://g",
    ]
    assert found.kinds.tolist() == [0, NO_KIND, 1, 2, 3, 0, 0]


def test_no_reply_to():
    assert reply_addresses_of(rows_of(text=["a"]), ARTEMIS) is None


def test_a_reply_to_without_a_name_is_refused():
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSReplyTo"):
        reply_addresses_of(rows_of(JMSReplyTo=["a", "queue://"]), ARTEMIS)


def test_a_reply_to_that_is_not_utf8_is_refused():
    texts = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSReplyTo .*UTF-8"):
        reply_addresses_of(rows_of(JMSReplyTo=texts), ARTEMIS)
